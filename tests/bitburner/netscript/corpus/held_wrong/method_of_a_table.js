// The game: TypeError: ns.getServerFreeRam is not a function
const tools = {
  free(ns, host) {
    return ns.getServerFreeRam(host);
  },
};
export async function main(ns) {
  ns.print(tools.free(ns, "home"));
}
