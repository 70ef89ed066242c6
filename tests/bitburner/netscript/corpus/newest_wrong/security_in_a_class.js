// The game: ns.getServerSecurity is not a function
export class Target {
  constructor(ns, host) {
    this.ns = ns;
    this.host = host;
  }
  isReady() {
    return this.ns.getServerSecurity(this.host) <= this.ns.getServerMinSecurityLevel(this.host) + 1;
  }
}

export async function main(ns) {
  const target = new Target(ns, "n00dles");
  while (!target.isReady()) await ns.weaken(target.host);
}
