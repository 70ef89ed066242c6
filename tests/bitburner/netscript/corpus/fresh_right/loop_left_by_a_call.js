// The game: works
export async function main(ns) {
  let tries = 0;
  while (true) {
    if (++tries > 10) return;
    await ns.sleep(50);
  }
}
