// The game: does not start: there is no main
export default async function main(ns) {
  ns.tprint("hello");
}
