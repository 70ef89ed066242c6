// The game: fails at line 3, ReferenceError: total is not defined
export async function main(ns) {
  total = 0;
  for (const host of ns.scan()) total += ns.getServerMoneyAvailable(host);
  ns.tprint(total);
}
