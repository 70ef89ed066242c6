// The game: works
export async function main(ns) {
  const major = Number(ns.ui.getGameInfo().version.split(".")[0]);
  const names = major >= 3 ? ns.cloud.getServerNames() : ns.getPurchasedServers();
  ns.print(names);
}
