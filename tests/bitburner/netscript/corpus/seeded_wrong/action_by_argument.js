// The game: fails at line 5, dynamic RAM usage
export async function main(ns) {
  const actions = { h: "hack", g: "grow" };
  const action = actions[ns.args[0]];
  await ns[action]("n00dles");
}
