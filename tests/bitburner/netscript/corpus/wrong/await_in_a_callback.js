// The game: SyntaxError, the script does not start
export async function main(ns) {
  ns.scan("home").forEach((host) => {
    await ns.weaken(host);
  });
}
