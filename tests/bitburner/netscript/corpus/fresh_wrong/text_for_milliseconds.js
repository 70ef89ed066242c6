// The game: sleep: millis must be a number, runtime error
export async function main(ns) {
  await ns.sleep("soon");
}
