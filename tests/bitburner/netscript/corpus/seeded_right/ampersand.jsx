// The game: works
export async function main(ns) {
  ns.printRaw(<div>Hack & Grow <b>R&D</b> a && b</div>);
  ns.printRaw(<span title="a & b">{1 & 3}</span>);
}
