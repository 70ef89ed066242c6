// The game: does nothing, exec returns 0: there is no such server
export async function main(ns) {
  ns.exec("worker.js", "n00dels", 1);
}
//// worker.js
export async function main(ns) {}
