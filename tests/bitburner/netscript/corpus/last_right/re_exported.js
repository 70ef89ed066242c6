// The game: runs
import * as tools from "./tools/index.js";
import { format as show, DEFAULTS } from "/tools/index.js";

export async function main(ns) {
  ns.tprint(show(tools.sum([1, 2, 3])), DEFAULTS.reserve);
}
//// tools/index.js
export { sum } from "tools/math.js";
export const DEFAULTS = Object.freeze({ reserve: 8 });
export function format(value) {
  return `${value}`;
}
//// tools/math.js
export const sum = (values) => values.reduce((a, b) => a + b, 0);
