// The game: TypeError: market.buyStok is not a function
export async function main(ns) {
  const market = ns.stock;
  if (market.getPrice("ECP") < 100) market.buyStok("ECP", 10);
}
