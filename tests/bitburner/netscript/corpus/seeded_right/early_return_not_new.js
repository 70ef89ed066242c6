// The game: works
function isV3(ns) { return ns.cloud !== undefined; }
export async function main(ns) {
  if (!isV3(ns)) return ns.tprint("needs 3.0");
  await ns.newThing("a");
}
