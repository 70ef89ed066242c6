// The game: SyntaxError: no export named conect, the script does not start
import { conect } from "./lib/network.js";
export async function main(ns) {
  conect(ns, "n00dles");
}
//// lib/network.js
export function connect(ns, host) {
  return ns.singularity.connect(host);
}
