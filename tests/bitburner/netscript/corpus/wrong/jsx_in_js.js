// The game: SyntaxError, the script does not start
export async function main(ns) {
  ns.tprintRaw(<b>hello</b>);
}
