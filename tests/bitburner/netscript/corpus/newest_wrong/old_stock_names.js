// The game: TypeError: ns.stock.buy is not a function
export async function main(ns) {
  for (const symbol of ns.stock.getSymbols()) {
    if (ns.stock.getForecast(symbol) > 0.6) ns.stock.buy(symbol, 100);
  }
}
