// The game: TypeError: ns.joinFaction is not a function
export async function main(ns) {
  for (const name of ["CyberSec"]) ns.joinFaction(name);
}
