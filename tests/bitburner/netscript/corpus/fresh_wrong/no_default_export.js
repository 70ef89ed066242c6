// The game: does not start: lib.js has no default export
import lib from "./lib.js";
export async function main(ns) {
  lib(ns);
}
//// lib.js
export function lib(ns) {
  ns.print("lib");
}
