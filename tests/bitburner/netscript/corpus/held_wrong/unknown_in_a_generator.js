// The game: TypeError: ns.scann is not a function
function* hosts(ns) {
  yield* ns.scann("home");
}
export async function main(ns) {
  for (const host of hosts(ns)) ns.print(host);
}
