// The game: fails when it calls the first, dynamic RAM usage
export async function main(ns) {
  for (const action of ["hack", "grow", "weaken"]) await ns[action]("n00dles");
}
