// The game: works
import { NS } from "@ns";
const last = <T,>(list: T[]): T | undefined => list[list.length - 1];
export async function main(ns: NS): Promise<void> {
  const host = last(ns.scan("home"));
  if (host) ns.print(ns.getServer(host)?.hostname as string);
}
