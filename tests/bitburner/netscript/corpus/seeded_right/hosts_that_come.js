// The game: works
export async function main(ns) {
  const name = ns.purchaseServer("pserv-0", 8);
  ns.scp("worker.js", name);
  ns.exec("worker.js", "pserv-0");
  ns.exec(ns.getScriptName(), "home");
  ns.write("made.js", "export async function main(ns) {}", "w");
  ns.run("made.js");
  ns.tprint(ns.serverExists("no-such"), ns.fileExists("none.js", "home"), ns.read("log.txt"));
}
//// worker.js
export async function main(ns) {}
