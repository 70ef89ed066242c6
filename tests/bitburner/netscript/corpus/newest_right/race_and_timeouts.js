// The game: works
export async function main(ns) {
  const pending = new Set();
  const spawn = (action, delay) => {
    const promise = new Promise((done) => setTimeout(done, delay)).then(action);
    pending.add(promise);
    promise.finally(() => pending.delete(promise));
    return promise;
  };
  for (let wave = 0; wave < 5; wave++) {
    spawn(() => ns.print(`wave ${wave}`), wave * 100);
  }
  const winner = await Promise.race([ns.nextPortWrite(1).then(() => "port"), ns.asleep(5000).then(() => "time")]);
  ns.tprint(winner);
  await Promise.allSettled(pending);
  const results = await Promise.all(ns.args.map(async (host) => [host, await ns.asleep(100)].join(" ")));
  ns.tprint(results.join());
}
