// The game: works
export async function main(ns) {
  ns.tprint(ns.heart.break());
  if (ns.exploit) ns.exploit();
}
