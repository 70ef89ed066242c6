// The game: atExit: f must be a function, runtime error
export async function main(ns) {
  ns.atExit(ns.tprint("bye"));
}
