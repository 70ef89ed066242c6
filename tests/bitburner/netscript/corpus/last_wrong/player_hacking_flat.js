// The game: undefined; the level is in player.skills.hacking
export async function main(ns) {
  const player = ns.getPlayer();
  if (player.hackingLevel >= ns.getServerRequiredHackingLevel("the-hub")) {
    ns.tprint("ready");
  }
}
