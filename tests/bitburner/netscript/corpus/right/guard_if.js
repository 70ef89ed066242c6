// The game: works
export async function main(ns) {
  if (ns.newFunction) ns.newFunction("n00dles");
}
