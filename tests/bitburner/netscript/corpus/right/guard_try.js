// The game: works
export async function main(ns) {
  let names = [];
  try {
    names = ns.cloud.getServerNames();
  } catch {
    names = ns.scan("home");
  }
  ns.print(names);
}
