// The game: does not start: syntax error
export async function main(ns) {
  ns.tprint("a" "b");
}
