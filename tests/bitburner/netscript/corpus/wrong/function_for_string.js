// The game: scan: host must be a string, runtime error
export async function main(ns) {
  for (const host of ns.scan(() => "home")) ns.print(host);
}
