// The game: works
import { range } from "./lib/numbers.js";
import * as numbers from "lib/numbers";
export const hosts = (ns) => range(3).map((n) => `pserv-${n}`).filter((host) => ns.serverExists(host));
export const sum = (list) => list.reduce((a, b) => a + b, numbers.zero);
//// lib/numbers.js
export * from "./more.js";
export const zero = 0;
//// lib/more.js
export const range = (n) => [...Array(n).keys()];
