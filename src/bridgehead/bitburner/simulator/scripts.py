"""Scripts: what is on the home server of a simulated game unless a folder is named: a player's first ones."""

STARTER = {
    "early.js": """\
/** Takes what a server has, again and again. */
export async function main(ns) {
  const target = ns.args[0] ?? "n00dles";
  while (true) {
    await ns.weaken(target);
    await ns.hack(target);
  }
}
""",
    "lib/scout.js": """\
export async function main(ns) {
  ns.tprint(ns.scan("home"));
}
""",
}
