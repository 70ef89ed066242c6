// The game: undefined: a server has moneyMax, no maxMoney
export async function main(ns) {
  for (const host of ns.scan("home")) {
    const { moneyAvailable, maxMoney, minDifficulty } = ns.getServer(host);
    ns.tprint(host, moneyAvailable / maxMoney, minDifficulty);
  }
}
