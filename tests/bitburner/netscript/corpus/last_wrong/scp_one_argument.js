// The game: scp: Missing arguments
export async function main(ns) {
  const workers = ns.getPurchasedServers();
  for (const worker of workers) {
    ns.scp("worker.js");
    ns.exec("worker.js", worker, 4);
  }
}
