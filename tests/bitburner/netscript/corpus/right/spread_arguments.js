// The game: works
export async function main(ns) {
  const rest = [1, "n00dles"];
  ns.exec("worker.js", "home", ...rest);
  ns.run(...["worker.js", 1]);
}
