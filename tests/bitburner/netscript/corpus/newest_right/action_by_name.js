// The game: works
const PLAN = { hack: 1.7, grow: 1.75, weaken: 1.75 };

export async function main(ns) {
  const target = String(ns.args[0] || "n00dles");
  const decide = () => {
    switch (true) {
      case ns.getServerSecurityLevel(target) > ns.getServerMinSecurityLevel(target) + 5:
        return "weaken";
      case ns.getServerMoneyAvailable(target) < 0.75 * ns.getServerMaxMoney(target):
        return "grow";
      default:
        return "hack";
    }
  };
  let total = 0;
  while (total < 1e6) {
    const action = decide();
    const result = await ns[action](target);
    if (action === "hack") total += result;
    ns.print(`${action} (${PLAN[action]} GB): ${result}`);
  }
}
