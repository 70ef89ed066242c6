// The game: TypeError: assignment to constant variable
export async function main(ns) {
  const count = 0;
  for (const host of ns.scan()) {
    if (ns.hasRootAccess(host)) count = count + 1;
  }
  ns.print(count);
}
