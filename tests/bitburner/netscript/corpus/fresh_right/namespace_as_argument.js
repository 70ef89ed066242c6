// The game: works
function count(nodes) {
  return nodes.numNodes();
}
export async function main(ns) {
  ns.print(count(ns.hacknet));
}
