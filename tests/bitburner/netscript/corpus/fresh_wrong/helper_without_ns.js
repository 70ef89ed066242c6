// The game: ReferenceError: getHackingLevel is not defined
export async function main(ns) {
  if (isStrong()) ns.tprint("strong");
}
function isStrong() {
  return getHackingLevel() > 100;
}
