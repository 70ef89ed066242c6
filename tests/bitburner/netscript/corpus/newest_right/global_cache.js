// The game: works
globalThis.hostCache ??= new Map();
const win = globalThis["window"] ?? eval("window");
const cache = globalThis.hostCache;

export async function main(ns) {
  const remember = (host) => {
    if (!cache.has(host)) cache.set(host, { seen: Date.now(), max: ns.getServerMaxMoney(host) });
    return cache.get(host);
  };
  ns.scan().forEach((host) => ns.tprint(JSON.stringify(remember(host), null, 2)));
  win._nsHelper = { stop: () => ns.exit(), version: 2 };
  if (win._nsHelper.version !== 2) win.location.reload();
  const settings = JSON.parse(localStorage.getItem("bot") || "{}");
  settings.runs = (settings.runs | 0) + 1;
  localStorage.setItem("bot", JSON.stringify(settings));
  const reply = await fetch("http://localhost:9999/state").catch(() => undefined);
  if (reply?.ok) ns.print(await reply.text());
}
