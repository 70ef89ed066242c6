// The game: works
export async function main(ns) {
  const server = ns.getServer("home");
  if (server.futureProperty) ns.print(server.futureProperty);
  ns.print(server.other ?? 0);
}
