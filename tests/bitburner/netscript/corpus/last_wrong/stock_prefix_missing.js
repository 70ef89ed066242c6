// The game: TypeError: ns.getPrice is not a function
export async function main(ns) {
  const symbols = ns.stock.getSymbols();
  for (const symbol of symbols) {
    const price = ns.getPrice(symbol);
    ns.print(`${symbol}: ${ns.formatNumber(price)}`);
  }
}
