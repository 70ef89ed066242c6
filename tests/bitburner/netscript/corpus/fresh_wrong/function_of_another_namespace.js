// The game: TypeError: ns.stock.purchaseServer is not a function
export async function main(ns) {
  ns.stock.purchaseServer("big", 64);
}
