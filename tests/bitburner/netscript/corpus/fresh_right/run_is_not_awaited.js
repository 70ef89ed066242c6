// The game: works
export async function main(ns) {
  ns.run("a.js");
  ns.exec("b.js", "home", 2, "x", 3, true);
  ns.kill("a.js", "home");
}
