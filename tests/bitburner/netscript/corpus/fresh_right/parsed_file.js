// The game: works
export async function main(ns) {
  const config = JSON.parse(ns.read("config.txt") || "{}");
  ns.print(config.targets?.first, config.deep);
}
