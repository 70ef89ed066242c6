// The game: TypeError: this.ns.getMoney is not a function
class Base {
  constructor(ns) {
    this.ns = ns;
  }
}
class Shop extends Base {
  canBuy(price) {
    return this.ns.getMoney() > price;
  }
}
export async function main(ns) {
  ns.print(new Shop(ns).canBuy(10));
}
