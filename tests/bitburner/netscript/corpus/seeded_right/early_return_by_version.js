// The game: works
const isOld = (ns) => !("hacknet" in ns);
export async function main(ns) {
  if (isOld(ns)) {
    ns.tprint("old");
    return;
  }
  ns.cloud.purchase("a", 8);
}
