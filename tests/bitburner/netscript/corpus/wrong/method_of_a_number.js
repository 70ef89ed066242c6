// The game: TypeError: toUpperCase is not a function
export async function main(ns) {
  const level = ns.getHackingLevel();
  ns.tprint(level.toUpperCase());
}
