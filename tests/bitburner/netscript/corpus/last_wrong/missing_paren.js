// The game: does not start, SyntaxError
export async function main(ns) {
  const target = ns.args[0];
  while (true) {
    if (ns.getServerSecurityLevel(target) > ns.getServerMinSecurityLevel(target) + 5 {
      await ns.weaken(target);
    } else {
      await ns.hack(target);
    }
  }
}
