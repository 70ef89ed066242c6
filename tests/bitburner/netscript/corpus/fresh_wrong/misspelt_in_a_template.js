// The game: TypeError: ns.getServerMaxMony is not a function
export async function main(ns) {
  ns.tprint(`at most ${ns.getServerMaxMony("n00dles")}`);
}
