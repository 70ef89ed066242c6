// The game: works: these objects are the script's own
const ns2 = { hakc: (host) => `hacking ${host}`, hack() {} };

function simulate(ns, turns) {
  ns.money = turns * 10;
  ns.finish();
  return ns.money;
}

const hack = async (ns, host) => {
  const taken = await ns.hack(host);
  return { taken, host, then: undefined };
};

export async function main(ns) {
  const model = { money: 0, finish() { this.money += 1; } };
  ns.tprint(simulate(model, 3), ns2.hakc("home"));
  {
    const ns = { tprint: console.log, shout: (text) => console.warn(text.toUpperCase()) };
    ns.shout("inner");
  }
  const { taken } = await hack(ns, "n00dles");
  var count = taken || 0;
  var count = Number(count) + 1;
  ns.tprint(count, new (class extends Array {})(3).length);
}
