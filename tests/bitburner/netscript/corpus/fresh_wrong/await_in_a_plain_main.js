// The game: does not start: await is only valid in async functions
export function main(ns) {
  await ns.sleep(5);
}
