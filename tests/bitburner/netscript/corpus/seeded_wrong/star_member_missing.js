// The game: fails at line 4, TypeError: L.walkAll is not a function
import * as L from "lib/net.js";
export async function main(ns) {
  L.walkAll(ns);
}
//// lib/net.js
export function walk(ns) { return ns.scan(); }
