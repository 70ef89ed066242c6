// The game: SyntaxError, the script does not start
const ready = false;
if (!ready) return;
export async function main(ns) {
  ns.print(ready);
}
