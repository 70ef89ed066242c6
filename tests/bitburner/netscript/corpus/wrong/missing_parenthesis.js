// The game: SyntaxError, the script does not start
export async function main(ns) {
  if (ns.hasRootAccess("n00dles") {
    await ns.hack("n00dles");
  }
}
