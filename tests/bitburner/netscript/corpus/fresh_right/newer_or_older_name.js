// The game: works
export async function main(ns) {
  const names = ns.cloud?.getServerNames?.() ?? ns.getPurchasedServers();
  ns.print(names);
}
