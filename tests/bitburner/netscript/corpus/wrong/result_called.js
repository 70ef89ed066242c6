// The game: TypeError: ns.getHostname(...) is not a function
export async function main(ns) {
  ns.print(ns.getHostname()());
}
