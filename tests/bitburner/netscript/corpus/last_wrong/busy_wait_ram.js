// The game: hangs; the loop never gives the game a turn
export async function main(ns) {
  const host = ns.args[0] ?? "home";
  while (ns.getServerMaxRam(host) - ns.getServerUsedRam(host) < 16) {
    ns.print("waiting for memory");
  }
  ns.exec("big.js", host);
}
