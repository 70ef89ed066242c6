// The game: TypeError: this.ns.getServerMony is not a function
class Target {
  constructor(ns, host) {
    this.ns = ns;
    this.host = host;
  }
  money() {
    return this.ns.getServerMony(this.host);
  }
}
export async function main(ns) {
  ns.tprint(new Target(ns, "n00dles").money());
}
