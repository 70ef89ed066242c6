// The game: works
class Runner {
  constructor(ns) {
    this.ns = ns;
  }
  host() {
    return this.ns.getHostname();
  }
}
class Registry {
  constructor() {
    this.ns = new Map();
  }
  add(name) {
    this.ns.set(name, this.ns.size);
  }
}
export async function main(ns) {
  const registry = new Registry();
  registry.add(new Runner(ns).host());
}
