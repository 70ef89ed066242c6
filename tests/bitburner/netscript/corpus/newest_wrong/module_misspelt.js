// The game: does not start: /lib/nets.js does not exist
import { walk } from "/lib/nets.js";

export async function main(ns) {
  ns.tprint(walk(ns));
}
//// lib/net.js
export const walk = (ns) => ns.scan();
