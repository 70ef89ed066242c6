// The game: SyntaxError: the module does not provide an export named scanAll
import { scanAll } from "./network.js";

export async function main(ns) {
  ns.tprint(scanAll(ns).length);
}
//// network.js
export default function scanAll(ns) {
  return ns.scan();
}
