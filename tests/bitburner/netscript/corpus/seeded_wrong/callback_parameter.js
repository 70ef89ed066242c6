// The game: fails at line 3, ReferenceError: server is not defined
export async function main(ns) {
  ns.scan().forEach((s) => ns.print(server));
}
