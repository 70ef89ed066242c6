// The game: works
export async function main(ns) {
  if (false) ns.futureFunction();
  ns.print("charged");
}
