// The game: works
function* ids() {
  let id = 0;
  while (true) yield id++;
}
export async function main(ns) {
  const next = ids();
  for (const host of ns.scan("home")) ns.print(next.next().value, host);
}
