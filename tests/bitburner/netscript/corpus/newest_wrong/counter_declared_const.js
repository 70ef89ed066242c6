// The game: TypeError: assignment to a constant variable
export async function main(ns) {
  const budget = ns.getServerMoneyAvailable("home");
  const bought = 0;
  for (const host of ns.scan()) {
    if (ns.hasRootAccess(host) && budget > 0) bought += 1;
  }
  ns.tprint(bought);
}
