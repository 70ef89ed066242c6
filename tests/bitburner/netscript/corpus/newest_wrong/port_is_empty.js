// The game: TypeError: port.isEmpty is not a function
export async function main(ns) {
  const port = ns.getPortHandle(1);
  while (true) {
    if (!port.isEmpty()) ns.print(port.read());
    await ns.sleep(100);
  }
}
