// The game: freezes the game
export async function main(ns) {
  for (;;) {
    if (ns.getServerMoneyAvailable("home") > 1e6) ns.print("rich");
  }
}
