// The game: grow: host missing, runtime error
export async function main(ns) {
  const { grow, weaken } = ns;
  await weaken("n00dles");
  await grow();
}
