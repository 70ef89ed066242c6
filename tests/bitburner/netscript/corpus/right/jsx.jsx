// The game: works
export async function main(ns) {
  const name = ns.getHostname();
  ns.tprintRaw(<b title={name}>{ns.getHackingLevel()}</b>);
}
