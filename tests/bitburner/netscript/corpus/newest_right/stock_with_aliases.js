// The game: works
export async function main(ns) {
  const tix = ns.stock;
  const { buyStock: buy, sellStock: sell } = tix;
  const held = (symbol) => {
    const [long, , short] = tix.getPosition(symbol);
    return { long, short };
  };
  while (true) {
    for (const symbol of tix.getSymbols()) {
      const { long } = held(symbol);
      const chance = tix.getForecast(symbol);
      const room = tix.getMaxShares(symbol) - long;
      const money = ns.getServerMoneyAvailable("home") * 0.1;
      const count = Math.floor(Math.min(room, money / tix.getAskPrice(symbol)));
      if (chance > 0.6 && count > 0) buy(symbol, count);
      else if (chance < 0.5 && long) sell(symbol, long);
    }
    await (tix.nextUpdate?.() ?? ns.sleep(6000));
  }
}
