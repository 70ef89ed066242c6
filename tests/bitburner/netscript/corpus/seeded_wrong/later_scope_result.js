// The game: fails at line 7, ReferenceError: pid is not defined
export async function main(ns) {
  if (ns.args.length) {
    let pid = ns.run("a.js");
    ns.print(pid);
  }
  if (pid) ns.tail(pid);
}
