// The game: compares a function: always false
export async function main(ns) {
  if (ns.getHackingLevel > 50) ns.tprint("go on");
}
