// The game: fails at line 7, ReferenceError: best is not defined
export async function main(ns) {
  for (const host of ns.scan()) {
    const best = host;
    ns.print(best);
  }
  ns.tprint(best);
}
