// The game: exec: host missing, runtime error
export async function main(ns) {
  ns.exec("weaken.js");
}
