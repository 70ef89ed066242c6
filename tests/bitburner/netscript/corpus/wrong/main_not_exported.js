// The game: no main function, the script does not start
async function main(ns) {
  ns.tprint("hello");
}
