// The game: freezes the game: sleep is not awaited
export async function main(ns) {
  while (true) {
    ns.clearLog();
    ns.print(ns.getServerMoneyAvailable("home"));
    ns.sleep(1000);
  }
}
