// The game: TypeError: grwo is not a function
export async function main(ns) {
  const { hack, grwo } = ns;
  await hack("n00dles");
  await grwo("n00dles");
}
