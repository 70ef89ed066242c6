// The game: ReferenceError: taget is not defined
export async function main(ns) {
  const target = ns.args[0];
  await ns.hack(taget);
}
