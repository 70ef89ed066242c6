// The game: works
export async function main(ns) {
  globalThis.shared ??= { count: 0 };
  shared.count += 1;
  window["board"] = {};
  if (typeof other !== "undefined") ns.print(other.x);
  ns.print(shared.count);
}
