// The game: TypeError: ns.hakc is not a function
export async function main(ns) {
  const done = await ns["hakc"]("n00dles");
  ns.print(done);
}
