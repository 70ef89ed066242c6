// The game: works
export async function main(ns) {
  ns.tprint(ns.fileExists(1));
  ns.toast(42);
}
