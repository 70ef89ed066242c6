// The game: concurrent calls to Netscript functions, runtime error
export async function main(ns) {
  ns.scan("home").forEach(async (host) => {
    await ns.weaken(host);
  });
}
