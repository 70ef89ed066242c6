// The game: works: the functions do not need their object
export async function main({ args, getHostname, scan, sleep, tprint, exec, ...ns }) {
  const [depth = 2, script = "worker.js"] = args;
  const seen = new Set([getHostname()]);
  const visit = (host, left) => {
    if (left === 0) return;
    for (const next of scan(host).filter((one) => !seen.has(one))) {
      seen.add(next);
      visit(next, left - 1);
    }
  };
  visit("home", depth);
  for (const host of seen) {
    if (!ns.hasRootAccess(host)) continue;
    exec(script, host, { threads: 2, temporary: true }, host);
    await sleep(20);
  }
  tprint(`${seen.size} hosts`);
}
