// The game: fails at line 3, ReferenceError: formatMoney is not defined
export async function main(ns) {
  ns.tprint(formatMoney(ns.getPlayer().money));
}
//// lib/format.js
export function formatMoney(n) { return `$${n}`; }
