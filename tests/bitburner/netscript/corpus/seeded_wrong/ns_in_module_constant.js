// The game: does not start, ReferenceError: ns is not defined
const home = ns.getHostname();
export async function main(ns) {
  ns.tprint(home);
}
