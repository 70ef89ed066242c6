// The game: buyStock: shares missing, runtime error
export async function main(ns) {
  const paid = ns.stock.buyStock("ECP");
  ns.print(paid);
}
