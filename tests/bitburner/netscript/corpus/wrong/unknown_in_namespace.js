// The game: TypeError: ns.singularity.conect is not a function
export async function main(ns) {
  ns.singularity.conect("home");
}
