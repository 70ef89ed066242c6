// The game: TypeError: ns.hacknet is not a function
export async function main(ns) {
  const nodes = ns.hacknet();
  ns.print(nodes);
}
