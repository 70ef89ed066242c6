// The game: works
class Base {
  constructor(ns) {
    this.ns = ns;
  }
}
class Host extends Base {
  free(name) {
    return this.ns.getServerMaxRam(name) - this.ns.getServerUsedRam(name);
  }
}
export async function main(ns) {
  ns.print(new Host(ns).free("home"));
}
