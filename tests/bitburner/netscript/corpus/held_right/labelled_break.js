// The game: works
export async function main(ns) {
  const seen = new Set(["home"]);
  search: for (;;) {
    for (const host of seen) {
      for (const near of ns.scan(host)) {
        if (near === "CSEC") break search;
        seen.add(near);
      }
    }
  }
  ns.tprint("found");
}
