// The game: works
export async function main(ns) {
  const spaces = [{ name: "a", size: 1 }].map((ns) => ns.size);
  ns.print(spaces);
}
