// The game: does not start: syntax error
export async function main(ns) {
  for (const host of ns.scan()) {
    ns.print(host);
}
