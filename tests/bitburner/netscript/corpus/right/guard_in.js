// The game: works
export async function main(ns) {
  if ("newFunction" in ns) ns.newFunction("n00dles");
  else ns.print("old");
}
