// The game: works
export async function main(ns) {
  if (!ns.newFunction) return;
  for (const host of ns.scan()) ns.newFunction(host);
}
