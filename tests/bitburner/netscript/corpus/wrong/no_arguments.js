// The game: hack: host missing, runtime error
export async function main(ns) {
  await ns.hack();
}
