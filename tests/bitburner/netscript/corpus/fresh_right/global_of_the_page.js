// The game: works
export async function main(ns) {
  globalThis.visits = (globalThis.visits ?? 0) + 1;
  ns.print(visits);
}
