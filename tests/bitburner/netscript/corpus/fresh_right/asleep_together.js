// The game: works
export async function main(ns) {
  await Promise.all([ns.asleep(100), ns.asleep(200)]);
}
