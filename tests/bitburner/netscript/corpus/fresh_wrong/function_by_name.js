// The game: fails when it calls the first, dynamic RAM usage
export async function main(ns) {
  const actions = ["weaken", "grow", "hack"];
  for (const action of actions) await ns[action]("n00dles");
}
