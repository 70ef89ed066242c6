// The game: fails at line 3, ReferenceError: money is not defined
export async function main(ns) {
  ns.tprint(`earned ${money} so far`);
}
