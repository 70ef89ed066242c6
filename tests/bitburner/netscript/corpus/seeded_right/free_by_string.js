// The game: works
export async function main(ns) {
  for (const log of ["print", "tprint"]) ns[log]("hi");
}
