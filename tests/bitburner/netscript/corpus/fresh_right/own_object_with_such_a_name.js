// The game: works
export async function main(ns) {
  const net = { scanAll: () => ns.scan("home") };
  ns.print(net.scanAll());
}
