// The game: works
import type { NS } from "@ns";
export type * from "./lib/types";
export async function main(ns: NS): Promise<void> {
  ns.tprint("hello");
}
//// lib/types.ts
export type Host = string;
