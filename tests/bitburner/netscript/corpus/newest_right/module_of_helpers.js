// The game: works
import * as net from "/lib/net.js";
import money, { CURRENCY as unit } from "lib/money";
export { walk } from "lib/net.js";

export async function main(ns) {
  for (const host of net.walk(ns)) {
    ns.tprint(host, " ", money(ns.getServerMoneyAvailable(host)), unit);
  }
  const best = net.default?.best ?? net.best;
  ns.tprint(best(ns, [...net.walk(ns)]));
}
//// lib/net.js
export function* walk(ns, from = "home", seen = new Set()) {
  seen.add(from);
  yield from;
  for (const next of ns.scan(from)) if (!seen.has(next)) yield* walk(ns, next, seen);
}
export const best = (ns, hosts) => hosts.sort((a, b) => ns.getServerMaxMoney(b) - ns.getServerMaxMoney(a))[0];
//// lib/money.js
export const CURRENCY = "$";
const format = (amount) => amount.toExponential(2);
export default format;
