// The game: sleep: millis is not a number, runtime error
export async function main(ns) {
  await ns.sleep("soon");
}
