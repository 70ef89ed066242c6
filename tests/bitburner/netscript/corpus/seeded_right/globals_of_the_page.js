// The game: works
export async function main(ns) {
  const doc = eval("document");
  const copy = structuredClone({ a: 1 });
  queueMicrotask(() => ns.print(copy.a));
  requestAnimationFrame(() => {});
  ns.print(encodeURIComponent("a b"), isFinite(3), globalThis === window, doc.title, undefined, performance.now());
  console.log(navigator.userAgent, location.href, history.length);
}
