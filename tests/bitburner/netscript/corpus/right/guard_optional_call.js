// The game: works
export async function main(ns) {
  const level = ns.newFunction?.("n00dles") ?? ns.getHackingLevel();
  ns.print(level);
}
