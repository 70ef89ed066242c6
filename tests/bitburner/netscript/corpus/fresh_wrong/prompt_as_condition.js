// The game: a promise is always true: the answer is ignored
export async function main(ns) {
  if (ns.prompt("Sell everything?")) ns.tprint("sold");
}
