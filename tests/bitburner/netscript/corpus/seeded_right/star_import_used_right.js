// The game: works
import * as L from "lib/net.js";
import * as R from "lib/all.js";
export async function main(ns) {
  if (L.maybe) L.maybe(ns);
  ns.print(L.walk(ns), L["walk"], Object.keys(L), R.anything);
}
//// lib/net.js
export function walk(ns) { return ns.scan(); }
//// lib/all.js
export * from "./net.js";
