// The game: concurrent calls to Netscript functions: hack is not awaited
export async function main(ns) {
  const target = ns.args[0];
  while (true) {
    if (ns.getServerMoneyAvailable(target) > 1e6) {
      ns.hack(target);
    }
    await ns.grow(target);
  }
}
