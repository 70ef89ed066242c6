// The game: hostname must be a string, runtime error
export async function main(ns) {
  await ns.hack(ns.scan("home"));
}
