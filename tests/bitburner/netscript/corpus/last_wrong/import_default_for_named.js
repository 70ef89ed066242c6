// The game: does not start, the module has no export named scanAll
import { scanAll } from "./network.js";

export async function main(ns) {
  ns.tprint(scanAll(ns).length);
}
//// network.js
export default function scanAll(ns) {
  return ns.scan();
}
