// The game: TypeError: forEech is not a function
export async function main(ns) {
  ns.scan("home").forEech((host) => ns.print(host));
}
