// The game: works
export async function main(ns) {
  const { stock: market, hacknet: { numNodes }, args: [target = "n00dles"] } = ns;
  ns.print(market.getSymbols().length, numNodes(), target);
}
