// The game: runs
export async function main(ns) {
  const seen = ["home"];
  for (const host of seen) seen.push(...ns.scan(host).filter((next) => !seen.includes(next)));
  const score = (host) => ns.getServerMaxMoney(host) / ns.getServerMinSecurityLevel(host);
  const best = seen
    .filter((host) => ns.hasRootAccess(host) && ns.getServerRequiredHackingLevel(host) <= ns.getHackingLevel() / 2)
    .map((host) => ({ host, score: score(host) }))
    .sort((a, b) => b.score - a.score)
    .at(0);
  ns.tprintf("%s %d", best?.host, best?.score);
}
