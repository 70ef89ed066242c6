// The game: works
export async function main(ns) {
  const territory = ns.gang?.getGangInformation?.()?.territory ?? 0;
  ns.print(territory, ns.dnet?.probe?.()?.length);
}
