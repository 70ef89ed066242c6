// The game: does not start, SyntaxError
export async function main(ns) {
  const all = ns.scan().map((host) => await ns.weaken(host));
  ns.print(all);
}
