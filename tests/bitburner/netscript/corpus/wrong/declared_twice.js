// The game: SyntaxError, the script does not start
export async function main(ns) {
  let money = ns.getPlayer().money;
  let money = Math.floor(money);
  ns.print(money);
}
