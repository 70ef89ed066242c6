// The game: works
export async function main(ns) {
  const modern = typeof ns.newFunction === "function";
  if (modern) ns.newFunction("n00dles");
}
