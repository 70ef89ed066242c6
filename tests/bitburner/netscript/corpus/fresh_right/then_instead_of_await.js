// The game: works
export async function main(ns) {
  ns.asleep(1000).then(() => ns.tprint("later"));
  await ns.sleep(2000);
}
