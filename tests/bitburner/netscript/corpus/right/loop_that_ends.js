// The game: works
export async function main(ns) {
  let left = 10;
  while (true) {
    left -= 1;
    if (left < 0) break;
  }
  while (1) {
    await ns.sleep(100);
  }
}
