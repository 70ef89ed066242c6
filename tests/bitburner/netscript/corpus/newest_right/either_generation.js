// The game: works in both generations of the game
export async function main(ns) {
  const openTail = ns.ui?.openTail ?? ns.tail;
  openTail();
  const owned = ns.getPurchasedServers ? ns.getPurchasedServers() : ns.cloud.getServerNames();
  const number = "formatNumber" in ns ? ns.formatNumber : ns.format?.number ?? String;
  const isNew = typeof ns.cloud === "object";
  if (isNew) {
    ns.print(ns.cloud.getServerLimit());
  } else {
    ns.print(ns.getPurchasedServerLimit());
  }
  for (const host of owned) ns.print(host, number(ns.getServerMaxRam(host)));
}
