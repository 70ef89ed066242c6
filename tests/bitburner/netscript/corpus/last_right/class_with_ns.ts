// The game: runs
import type { NS, Server } from "@ns";

abstract class Task {
  constructor(protected readonly ns: NS, public name = "task") {}
  abstract run(): Promise<number>;
}

class Weaken extends Task {
  #target: string;
  constructor(ns: NS, target: string) {
    super(ns, "weaken");
    this.#target = target;
  }
  get server(): Server {
    return this.ns.getServer(this.#target) as Server;
  }
  async run(): Promise<number> {
    return this.ns.weaken(this.#target, { threads: 1 });
  }
}

export async function main(ns: NS): Promise<void> {
  const tasks: Task[] = [new Weaken(ns, "n00dles")];
  for (const task of tasks) ns.print(task.name, await task.run());
}
