// The game: does not start: lib/net.js does not export walkAll
import { walkAll, root } from "lib/net.js";

export async function main(ns) {
  for (const host of walkAll(ns)) root(ns, host);
}
//// lib/net.js
export const walk = (ns) => ns.scan();
export function root(ns, host) {
  ns.nuke(host);
}
