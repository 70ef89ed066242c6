// The game: does not start: await in a function that is not async
export async function main(ns) {
  const hosts = ns.scan();
  hosts.forEach((host) => {
    await ns.weaken(host);
  });
}
