// The game: ReferenceError: weaken is not defined
export async function main(ns) {
  const target = "n00dles";
  await weaken(target);
}
