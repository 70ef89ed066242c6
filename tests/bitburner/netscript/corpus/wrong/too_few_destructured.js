// The game: exec: hostname missing, runtime error
export async function main(ns) {
  const { exec, tprint } = ns;
  if (exec("worker.js") === 0) tprint("no room");
}
