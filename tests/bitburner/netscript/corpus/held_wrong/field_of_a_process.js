// The game: undefined: a process has filename
export async function main(ns) {
  for (const process of ns.ps("home")) ns.print(process.name);
}
