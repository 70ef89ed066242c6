// The game: works
class Queue {
  #jobs = [];
  static limit = 5;
  get size() { return this.#jobs.length; }
  add(job) { if (this.size < Queue.limit) this.#jobs.push(job); }
}
export async function main(ns) {
  const queue = new Queue();
  try { queue.add(ns.args[0]); } catch { ns.print("full"); }
  ns.print(queue.size);
}
