// The game: works
import type { NS, Server } from "@ns";

enum Phase {
  Prepare = "prepare",
  Harvest = "harvest",
}

interface Target extends Partial<Server> {
  name: string;
  score: number;
}

type Step<T = void> = (ns: NS, target: Target) => Promise<T>;

const steps: Record<Phase, Step<number>> = {
  [Phase.Prepare]: async (ns, { name }) => ns.weaken(name),
  [Phase.Harvest]: (ns, target) => ns.hack(target.name),
};

function assertHost(value: unknown): asserts value is string {
  if (typeof value !== "string") throw new Error(`not a host: ${value}`);
}

const defaults = { limit: 3, verbose: false } as const satisfies Record<string, unknown>;

export async function main(ns: NS): Promise<void> {
  const [host] = ns.args;
  assertHost(host);
  const target: Target = { ...ns.getServer(host), name: host, score: 0 };
  target.score = (target.moneyMax ?? 0) / (target.minDifficulty || 1);
  for (let round = 0; round < defaults.limit; round++) {
    const phase = (target.hackDifficulty ?? 0) > (target.minDifficulty ?? 0) ? Phase.Prepare : Phase.Harvest;
    const gained = await steps[phase](ns, target);
    if (defaults.verbose) ns.print(phase, gained!);
  }
}
