// The game: works
export async function main(ns) {
  ns.print(ns.getHackingLevel("home"));
}
