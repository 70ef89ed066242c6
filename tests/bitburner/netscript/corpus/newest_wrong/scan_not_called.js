// The game: TypeError: ns.scan is not iterable
export async function main(ns) {
  for (const host of ns.scan) {
    ns.tprint(host);
  }
}
