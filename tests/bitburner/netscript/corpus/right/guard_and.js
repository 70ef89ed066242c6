// The game: works
export async function main(ns) {
  ns.newFunction && ns.newFunction("n00dles");
}
