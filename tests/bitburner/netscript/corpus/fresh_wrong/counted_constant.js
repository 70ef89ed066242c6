// The game: TypeError: Assignment to constant variable
export async function main(ns) {
  const runs = 0;
  while (runs < 3) {
    runs++;
    await ns.sleep(100);
  }
}
