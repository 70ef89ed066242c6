// The game: scp: destination is missing
export async function main(ns) {
  for (const host of ns.scan()) {
    ns.scp(["hack.js", "grow.js"]);
    ns.exec("hack.js", host);
  }
}
