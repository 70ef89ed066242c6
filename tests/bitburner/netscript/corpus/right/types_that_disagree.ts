// The game: works
import { NS } from "@ns";
export async function main(ns: NS) {
  const level: string = ns.getHackingLevel();
  ns.print(level);
}
