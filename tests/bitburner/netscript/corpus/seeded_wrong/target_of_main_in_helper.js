// The game: fails at line 7, ReferenceError: target is not defined
export async function main(ns) {
  const target = ns.args[0];
  await loop(ns);
}
async function loop(ns) {
  while (true) await ns.hack(target);
}
