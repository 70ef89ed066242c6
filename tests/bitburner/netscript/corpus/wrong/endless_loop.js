// The game: the game freezes
export async function main(ns) {
  while (true) {
    ns.print(ns.getServerMoneyAvailable("home"));
  }
}
