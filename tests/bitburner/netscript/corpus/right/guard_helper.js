// The game: works
const isV3 = (ns) => "cloud" in ns;
export async function main(ns) {
  if (isV3(ns)) ns.cloud.getServerNames();
  else ns.print("old");
}
