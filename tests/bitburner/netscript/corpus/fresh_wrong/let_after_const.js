// The game: does not start: target is declared twice
export async function main(ns) {
  const target = "n00dles";
  let target = ns.args[0];
  await ns.hack(target);
}
