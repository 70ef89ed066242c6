// The game: runs
export async function main(ns) {
  const [target, spacing = 40] = ns.args;
  const jobs = [
    { script: "hack.js", time: ns.getHackTime(target), offset: 0 },
    { script: "weaken.js", time: ns.getWeakenTime(target), offset: 1 },
    { script: "grow.js", time: ns.getGrowTime(target), offset: 2 },
  ];
  const last = Math.max(...jobs.map((job) => job.time));
  for (const { script, time, offset } of jobs) {
    const pid = ns.exec(script, "home", 1, target, last - time + offset * spacing);
    if (!pid) ns.print(`ERROR ${script}`);
  }
  await ns.asleep(last + spacing * jobs.length);
}
