// The game: does not start: main is not exported
const TARGET = "n00dles";

async function main(ns) {
  while (true) await ns.hack(TARGET);
}
