// The game: works
const make = (ns, { threads = 1, host = "home" } = {}, script = `w${threads}.js`) =>
  function start(...extra) {
    return ns.exec(script, host, threads, ...extra, arguments.length);
  };
export async function main(ns) {
  const start = make(ns, { threads: 2 });
  label: for (const [name, { cost }] of Object.entries({ a: { cost: 1 } })) {
    if (cost) { start(name); continue label; }
  }
}
