// The game: TypeError: Assignment to constant variable
export async function main(ns) {
  const budget = ns.getServerMoneyAvailable("home") / 2;
  for (let i = 0; i < ns.hacknet.numNodes(); i++) {
    const cost = ns.hacknet.getLevelUpgradeCost(i, 10);
    if (cost < budget) {
      ns.hacknet.upgradeLevel(i, 10);
      budget -= cost;
    }
  }
}
