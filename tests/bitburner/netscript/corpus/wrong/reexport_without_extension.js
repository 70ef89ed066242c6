// The game: does not exist on server, the script does not start
export { connect } from "./lib/network";
export async function main(ns) {
  ns.print(1);
}
//// lib/network.js
export function connect(ns, host) {
  return ns.singularity.connect(host);
}
