// The game: works
export async function main(ns) {
  for (const [key, value] of Object.entries(ns.getPlayer())) ns.print(`${key}: ${value}`);
}
