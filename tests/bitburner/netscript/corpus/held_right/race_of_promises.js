// The game: works
export async function main(ns) {
  const port = ns.getPortHandle(1);
  while (true) {
    await Promise.race([port.nextWrite(), ns.asleep(5000)]);
    while (!port.empty()) ns.print(port.read());
  }
}
