// The game: works
export function crackers(ns) {
  return [
    ["BruteSSH.exe", ns.brutessh],
    ["FTPCrack.exe", ns.ftpcrack],
    ["relaySMTP.exe", ns.relaysmtp],
    ["HTTPWorm.exe", ns.httpworm],
    ["SQLInject.exe", ns.sqlinject],
  ].filter(([file]) => ns.fileExists(file, "home"));
}

export async function main(ns) {
  const tools = crackers(ns);
  const timing = { hack: ns.getHackTime, grow: ns.getGrowTime, weaken: ns.getWeakenTime };
  for (const host of ns.scan("home")) {
    if (ns.getServerNumPortsRequired(host) > tools.length) continue;
    tools.forEach(([, open]) => open(host));
    ns.nuke(host);
    const slowest = Object.entries(timing)
      .map(([name, time]) => ({ name, ms: time(host) }))
      .reduce((a, b) => (a.ms > b.ms ? a : b));
    ns.tprint(host, slowest.name, slowest.ms.toFixed());
  }
}
