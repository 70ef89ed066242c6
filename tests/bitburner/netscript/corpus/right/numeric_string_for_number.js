// The game: works
export async function main(ns) {
  await ns.sleep("1000");
}
