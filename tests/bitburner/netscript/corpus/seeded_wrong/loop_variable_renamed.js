// The game: fails at line 4, ReferenceError: host is not defined
export async function main(ns) {
  for (const h of ns.scan()) {
    ns.print(host);
  }
}
