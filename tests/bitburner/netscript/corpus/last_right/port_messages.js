// The game: runs
export async function main(ns) {
  const port = ns.getPortHandle(ns.pid);
  ns.atExit(() => port.clear());
  ns.run("worker.js", 1, ns.pid);
  await port.nextWrite();
  let message;
  while ((message = port.read()) !== "NULL PORT DATA") {
    const data = JSON.parse(message);
    ns.print(data.type, data.payload?.amount ?? 0);
  }
}
