// The game: works
class Job {
  static #next = 0;
  id = Job.#next++;
  constructor(host, kind) {
    Object.assign(this, { host, kind });
  }
  get label() {
    return `${this.kind}@${this.host}#${this.id}`;
  }
}

class Manager {
  constructor(ns, { limit = 10 } = {}) {
    this.ns = ns;
    this.limit = limit;
    this.jobs = new Map();
  }
  static create(ns) {
    return new this(ns, { limit: ns.args[0] });
  }
  get free() {
    const { ns } = this;
    return ns.getServerMaxRam("home") - ns.getServerUsedRam("home");
  }
  start(host) {
    const job = new Job(host, "grow");
    const pid = this.ns.run("grow.js", 1, host, job.label);
    if (pid) this.jobs.set(pid, job);
    return pid !== 0;
  }
  async loop() {
    for (;;) {
      for (const [pid, job] of this.jobs) {
        if (this.ns.isRunning(pid)) continue;
        this.jobs.delete(pid);
        this.ns.print(job.label, " ended");
      }
      if (this.jobs.size < this.limit && this.free > 4) this.start("n00dles");
      await this.ns.sleep(500);
    }
  }
}

export async function main(ns) {
  ns.disableLog("ALL");
  await Manager.create(ns).loop();
}
