// The game: works
export async function main(ns) {
  if (ns.args.length) {
    var target = ns.args[0];
  }
  ns.print(target);
  for (var i = 0; i < 3; i++) {}
  ns.print(i);
}
