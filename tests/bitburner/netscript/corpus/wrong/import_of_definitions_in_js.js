// The game: Invalid module, the script does not start
import { NS } from "@ns";
export async function main(ns) {
  ns.print(typeof NS);
}
