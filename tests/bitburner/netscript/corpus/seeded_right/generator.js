// The game: works
function* walk(ns, host = "home", from = null) {
  yield host;
  for (const next of ns.scan(host)) if (next !== from) yield* walk(ns, next, host);
}
export async function main(ns) {
  const costs = new Map([...walk(ns)].map((host) => [host, ns.getServerMaxRam(host)]));
  let best, second;
  for ([best, second] of costs) break;
  ns.tprint(best, second);
}
