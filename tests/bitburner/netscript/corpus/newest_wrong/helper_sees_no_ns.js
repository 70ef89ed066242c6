// The game: ReferenceError: ns is not defined
function log(message) {
  ns.print(`[${new Date().toLocaleTimeString()}] ${message}`);
}

export async function main(ns) {
  log("started");
  await ns.sleep(1000);
}
