// The game: fails at line 3, invalid hostname
export async function main(ns) {
  ns.tprint(ns.getServerMaxMoney("foodnstuf"));
}
