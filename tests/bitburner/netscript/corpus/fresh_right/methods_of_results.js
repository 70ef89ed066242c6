// The game: works
export async function main(ns) {
  ns.print(ns.scan().at(-1), ns.getHostname().padEnd(20), ns.getHackingLevel().toFixed(0));
}
