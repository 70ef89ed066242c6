// The game: ReferenceError: getServerList is not defined
export async function main(ns) {
  for (const host of getServerList(ns)) {
    ns.tprint(host, " ", ns.getServerMaxMoney(host));
  }
}

function listServers(ns, from = "home", seen = new Set()) {
  seen.add(from);
  for (const next of ns.scan(from)) if (!seen.has(next)) listServers(ns, next, seen);
  return [...seen];
}
