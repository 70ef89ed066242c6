// The game: yields undefined
export async function main(ns) {
  const names = ns.ps("home").map((process) => process.filname);
  ns.print(names);
}
