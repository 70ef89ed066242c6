// The game: hack: host must be a string, runtime error
export async function main(ns) {
  await ns.hack(["n00dles", "foodnstuff"]);
}
