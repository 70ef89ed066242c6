// The game: ReferenceError: targets is not defined
export async function main(ns) {
  const target = ns.args[0] ?? "n00dles";
  const minimum = ns.getServerMinSecurityLevel(target);
  while (ns.getServerSecurityLevel(targets) > minimum) {
    await ns.weaken(target);
  }
}
