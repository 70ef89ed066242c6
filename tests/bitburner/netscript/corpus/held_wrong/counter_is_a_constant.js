// The game: TypeError: Assignment to constant variable
export async function main(ns) {
  for (const i = 0; i < 3; i++) {
    await ns.sleep(10);
  }
}
