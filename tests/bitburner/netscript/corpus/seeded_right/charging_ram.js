// The game: works
export async function main(ns) {
  if (false) {
    ns.hack(); ns.grow(); ns.weaken(x);
  }
  if (0) { ns.sing.connect("x"); }
  for (const action of ["hack", "grow"]) await ns[action]("n00dles");
}
