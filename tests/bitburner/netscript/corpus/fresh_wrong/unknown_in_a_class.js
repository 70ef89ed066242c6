// The game: TypeError: this.ns.getServerRam is not a function
class Runner {
  constructor(ns) {
    this.ns = ns;
  }
  free(host) {
    return this.ns.getServerRam(host)[0];
  }
}
export async function main(ns) {
  ns.print(new Runner(ns).free("home"));
}
