// The game: exec: threads should be a number, "n00dles" is none
export async function main(ns) {
  ns.scp("worker.js", "n00dles");
  ns.exec("worker.js", 5, "n00dles");
}
