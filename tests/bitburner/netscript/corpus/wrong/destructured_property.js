// The game: yields undefined
export async function main(ns) {
  const { mony, karma } = ns.getPlayer();
  ns.print(mony, karma);
}
