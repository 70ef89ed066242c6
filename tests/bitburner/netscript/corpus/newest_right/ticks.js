// The game: works
async function* ticks(ns, ms) {
  let last = performance.now();
  while (true) {
    await ns.sleep(ms);
    const now = performance.now();
    yield now - last;
    last = now;
  }
}

const average = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / (numbers.length || 1);

export async function main(ns) {
  const lags = [];
  for await (const lag of ticks(ns, 200)) {
    lags.push(lag);
    if (lags.length > 50) lags.shift();
    ns.clearLog();
    ns.printf("%.1f ms on average, %d samples", average(lags), lags.length);
    if (ns.peek(1) === "stop") return;
  }
}
