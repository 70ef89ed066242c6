// The game: works: sleep resolves to true
/** @param {import(".").NS} ns */
export async function main(ns) {
  const step = async () => {
    const busy = ns.ps().some(({ filename, args: [target] }) => filename === "hack.js" && target === "n00dles");
    if (!busy) ns.run("hack.js", 1, "n00dles");
    await ns.sleep(50);
  };
  while (await ns.sleep(1000)) {
    await step();
    if (ns.fileExists("stop.txt")) break;
  }
  while (true) await step();
}
