// The game: runs
function logged(ns) {
  return new Proxy(ns, {
    get(target, key) {
      const value = target[key];
      return typeof value === "function" ? (...args) => (target.print(key, args), value(...args)) : value;
    },
  });
}

export async function main(ns) {
  ns = logged(ns);
  const price = ns.stock?.getPrice?.("ECP") ?? 0;
  ns.print(price);
  await ns.sleep(10);
}
