// The game: works
export async function main(ns) {
  const command = "ns.singularity.getOwnedAugmentations()";
  const code = `export async function main(ns) { ns.write("/tmp/out.txt", JSON.stringify(${command}), "w"); }`;
  ns.write("/tmp/run.js", code, "w");
  const pid = ns.run("/tmp/run.js");
  while (ns.isRunning(pid)) await ns.sleep(20);
  ns.print(JSON.parse(ns.read("/tmp/out.txt")).length);
}
