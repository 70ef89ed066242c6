// The game: TypeError: Cannot read properties of undefined
export async function main(ns) {
  ns.singularty.joinFaction("CyberSec");
}
