// The game: works
import { NS, Server } from "@ns";
enum Step { Weaken = "weaken", Grow = "grow" }
type Plan = Record<string, Step>;
export async function main(ns: NS): Promise<void> {
  const plan: Plan = {};
  const servers = ns.scan().map((host): Server => ns.getServer(host));
  for (const server of servers) plan[server.hostname] = server.hasAdminRights ? Step.Grow : Step.Weaken;
  ns.print((plan as object) satisfies object);
}
