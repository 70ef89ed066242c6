// The game: does not start, SyntaxError: Unexpected reserved word
/** @param {NS} ns */
export async function main(ns) {
  const targets = ["n00dles", "foodnstuff"];
  const weakenAll = () => {
    for (const target of targets) {
      await ns.weaken(target);
    }
  };
  weakenAll();
}
