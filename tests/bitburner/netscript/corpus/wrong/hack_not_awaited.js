// The game: concurrent calls to Netscript functions, runtime error
export async function main(ns) {
  ns.hack("n00dles");
  ns.tprint("started");
}
