// The game: TypeError: ns.hakc is not a function
export async function main(ns) {
  await ns.hakc("n00dles");
}
