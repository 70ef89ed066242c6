// The game: works
export async function main(ns) {
  for (const host of ns.scan("home")) {
    const time = ns.getHackTime(host);
    if (time < 60_000) await ns.hack(host, { additionalMsec: 10 });
  }
}
