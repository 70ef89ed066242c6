// The game: works
import { NS } from "@ns";
export class Worker {
  constructor(private ns: NS, readonly host: string) {}
  async run(): Promise<number> {
    return await this.ns.hack(this.host);
  }
}
export async function main(ns: NS) {
  await new Worker(ns, "n00dles").run();
}
