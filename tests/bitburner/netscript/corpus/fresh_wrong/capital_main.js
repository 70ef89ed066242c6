// The game: does not start: there is no main
export async function Main(ns) {
  ns.tprint("hi");
}
