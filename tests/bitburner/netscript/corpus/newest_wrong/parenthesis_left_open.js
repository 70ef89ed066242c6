// The game: does not start: syntax error
export async function main(ns) {
  const hosts = ns.scan();
  if (hosts.some((host) => ns.hasRootAccess(host)) {
    ns.tprint("some");
  }
}
