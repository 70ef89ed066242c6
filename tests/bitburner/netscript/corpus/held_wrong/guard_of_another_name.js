// The game: TypeError: ns.getServr is not a function
export async function main(ns) {
  if (ns.getServer) ns.print(ns.getServr("home"));
}
