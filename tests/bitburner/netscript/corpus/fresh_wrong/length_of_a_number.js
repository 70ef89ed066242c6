// The game: undefined: a number has no length
export async function main(ns) {
  const ram = ns.getServerMaxRam("home");
  ns.print(ram.length);
}
