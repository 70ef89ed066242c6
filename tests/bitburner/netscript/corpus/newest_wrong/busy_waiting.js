// The game: freezes the game: the loop never awaits
export async function main(ns) {
  const pid = ns.run("worker.js");
  while (true) {
    if (!ns.isRunning(pid)) {
      ns.run("worker.js");
    }
  }
}
