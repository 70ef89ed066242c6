// The game: hack: host must be a string, runtime error
export async function main(ns) {
  const hosts = ns.scan("home");
  await ns.hack(hosts);
}
