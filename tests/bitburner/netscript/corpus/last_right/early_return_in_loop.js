// The game: runs
export async function main(ns) {
  const target = String(ns.args[0] ?? "joesguns");
  for (;;) {
    const server = ns.getServer(target);
    if (server.hackDifficulty > server.minDifficulty * 1.2) {
      await ns.weaken(target);
      continue;
    }
    if (server.moneyAvailable < server.moneyMax * 0.9) await ns.grow(target);
    else if ((await ns.hack(target)) === 0) ns.print("nothing");
  }
}
