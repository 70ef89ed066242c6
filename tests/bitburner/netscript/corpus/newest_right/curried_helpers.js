// The game: works
const pipe = (...steps) => (value) => steps.reduce((result, step) => step(result), value);

export async function main(ns) {
  const log = (...parts) => ns.print(...parts.map(String));
  const on = (host) => (script, ...args) => ns.exec(script, host, 1, ...args);
  const ratio = pipe(
    (host) => [ns.getServerMoneyAvailable(host), ns.getServerMaxMoney(host)],
    ([now, max]) => (max ? now / max : 0),
    (share) => Math.round(share * 100),
  );
  const { print: say, tprint: shout } = ns;
  for (const host of ns.scan()) {
    const percent = ratio(host);
    (percent > 90 ? shout : say)(`${host}: ${percent} %`);
    log(on(host)("hack.js", host));
  }
  const timer = setTimeout(() => log("late"), 1000);
  ns.atExit(() => clearTimeout(timer));
  await ns.sleep(2000);
}
