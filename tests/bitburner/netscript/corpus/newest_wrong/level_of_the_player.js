// The game: undefined: a player has skills.hacking, no hackingLevel
export async function main(ns) {
  const level = ns.getPlayer().hackingLevel;
  const open = ns.scan().filter((host) => ns.getServerRequiredHackingLevel(host) <= level);
  ns.tprint(open.length);
}
