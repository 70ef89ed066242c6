// The game: does not start, lib/util.js does not exist; it is in libs/
import { formatMoney } from "lib/util.js";

export async function main(ns) {
  ns.tprint(formatMoney(ns.getServerMoneyAvailable("home")));
}
//// libs/util.js
export function formatMoney(value) {
  return "$" + value.toFixed(2);
}
