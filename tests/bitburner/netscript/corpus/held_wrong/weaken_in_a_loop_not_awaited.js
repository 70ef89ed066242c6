// The game: concurrent calls to Netscript functions, runtime error
export async function main(ns) {
  for (const host of ns.scan("home")) ns.weaken(host);
}
