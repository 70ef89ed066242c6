// The game: ReferenceError: hsot is not defined
export async function main(ns) {
  const rooted = ns.scan("home").filter((host) => ns.hasRootAccess(hsot));
  ns.print(rooted);
}
