// The game: TypeError: toFixed is not a function
export async function main(ns) {
  const stolen = ns.hack("n00dles");
  ns.print(stolen.toFixed(2));
  await stolen;
}
