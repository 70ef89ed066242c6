// The game: concurrent calls to Netscript functions, runtime error
export async function main(ns) {
  const stolen = ns.hack("n00dles");
  if (stolen > 0) ns.tprint("got " + stolen);
}
