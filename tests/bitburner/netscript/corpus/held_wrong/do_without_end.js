// The game: freezes the game
export async function main(ns) {
  let best = 0;
  do {
    best = Math.max(best, ns.getServerMoneyAvailable("n00dles"));
  } while (true);
}
