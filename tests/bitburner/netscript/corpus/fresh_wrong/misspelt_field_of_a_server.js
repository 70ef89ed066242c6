// The game: undefined: a server has moneyMax
export async function main(ns) {
  const server = ns.getServer("n00dles");
  ns.print(server.maxMoney);
}
