// The game: works
class Bot {
  #ns;
  constructor(ns) {
    this.#ns = ns;
  }
  get name() {
    return this.#ns.getHostname();
  }
}
export async function main(ns) {
  ns.print(new Bot(ns).name);
}
