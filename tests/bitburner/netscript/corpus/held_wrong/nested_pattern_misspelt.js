// The game: TypeError: getPrize is not a function
export async function main(ns) {
  const { stock: { getPrize } } = ns;
  ns.print(getPrize("ECP"));
}
