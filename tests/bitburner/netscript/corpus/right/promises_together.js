// The game: works
export async function main(ns) {
  await Promise.all([ns.asleep(10), ns.asleep(20)]);
  ns.asleep(5);
  ns.print("done");
}
