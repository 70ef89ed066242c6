// The game: does not start: syntax error
export async function main(ns: NS) {
  const host: string = ns.getHostname();
  ns.print(host);
}
