// The game: works
export async function main(ns) {
  for (const action of ["hack", "grow", "weaken"]) await ns[action]("n00dles");
}
