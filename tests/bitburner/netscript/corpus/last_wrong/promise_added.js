// The game: adds a promise to a number, the total is a string
export async function main(ns) {
  let total = 0;
  for (let i = 0; i < 10; i++) {
    total += ns.hack("n00dles");
  }
  ns.tprint(total);
}
