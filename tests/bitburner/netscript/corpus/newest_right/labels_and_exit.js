// The game: works
export async function main(ns) {
  const started = Date.now();
  let round = 0;
  ns.atExit(() => {
    ns.write("log.txt", `${round} rounds in ${Date.now() - started} ms\n`, "a");
  });
  const [first, ...others] = ns.read("targets.txt").split(/\r?\n/).filter(Boolean);
  outer: while (round++ < 100) {
    for (const host of [first, ...others]) {
      if (!host) break outer;
      if (ns.getServerRequiredHackingLevel(host) > ns.getHackingLevel()) continue outer;
      const { skills, money, city: where } = ns.getPlayer();
      if (skills.hacking < 10 || money < 0) break;
      ns.print(where, " ", host);
      await ns.sleep(10);
    }
    await ns.sleep(100);
  }
}
