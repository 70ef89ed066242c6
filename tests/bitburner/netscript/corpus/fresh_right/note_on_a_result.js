// The game: works
export async function main(ns) {
  const server = ns.getServer("home");
  server.note = "mine";
  ns.print(server.note);
}
