// The game: does not start, SyntaxError: Identifier 'ram' has already been declared
export async function main(ns) {
  let ram = ns.getServerMaxRam("home");
  const reserve = 32;
  let ram = ram - reserve;
  ns.tprint(ram);
}
