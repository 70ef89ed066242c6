// The game: does nothing, run returns 0: there is no such script
export async function main(ns) {
  ns.run("wroker.js");
}
//// worker.js
export async function main(ns) {}
