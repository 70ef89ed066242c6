// The game: yields undefined
export async function main(ns) {
  ns.tprint(ns.getPlayer().mony);
}
