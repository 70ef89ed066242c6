// The game: exec: threads must be a number or options, runtime error
export async function main(ns) {
  const worker = "worker.js";
  ns.exec(worker, "home", "two");
}
