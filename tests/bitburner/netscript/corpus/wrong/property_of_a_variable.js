// The game: yields undefined
export async function main(ns) {
  const server = ns.getServer("n00dles");
  ns.tprint("left: ", server.moneyAvailble);
}
