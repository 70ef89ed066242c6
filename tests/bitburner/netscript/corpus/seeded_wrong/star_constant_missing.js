// The game: works, but prints undefined
import * as config from "./config.js";
export async function main(ns) {
  ns.tprint(config.TARGETS);
}
//// config.js
export const TARGET = "n00dles";
