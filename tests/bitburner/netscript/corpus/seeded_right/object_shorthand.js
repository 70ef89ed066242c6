// The game: works
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export async function main(ns) {
  const flags = ns.flags([["loop", false]]);
  const { loop, _: rest } = flags;
  const report = { loop, rest, toString() { return `${loop}`; } };
  await wait(1);
  ns.print(report, rest.map((value, index, all) => all[index] ?? value));
}
