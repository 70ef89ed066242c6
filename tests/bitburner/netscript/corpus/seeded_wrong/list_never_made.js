// The game: fails at line 3, ReferenceError: hosts is not defined
export async function main(ns) {
  for (let i = 0; i < hosts.length; i++) ns.print(i);
}
