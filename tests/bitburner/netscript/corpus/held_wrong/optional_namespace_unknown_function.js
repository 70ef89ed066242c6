// The game: TypeError: ns.stock?.getPrices is not a function
export async function main(ns) {
  const price = ns.stock?.getPrices("ECP");
  ns.print(price);
}
