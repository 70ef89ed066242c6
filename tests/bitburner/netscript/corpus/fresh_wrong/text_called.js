// The game: TypeError: ns.getHostname(...) is not a function
export async function main(ns) {
  const name = ns.getHostname()();
  ns.print(name);
}
