// The game: fails at line 3, ReferenceError: config is not defined
export async function main(ns) {
  ns.tprint(config.target);
}
