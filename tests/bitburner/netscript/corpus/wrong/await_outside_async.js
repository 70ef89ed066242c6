// The game: SyntaxError, the script does not start
export function main(ns) {
  await ns.hack("n00dles");
}
