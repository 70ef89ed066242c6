// The game: works
const EMPTY = "NULL PORT DATA";

export async function main(ns) {
  const port = ns.getPortHandle(3);
  const handlers = {
    start: ({ script, args = [] }) => ns.run(script, 1, ...args),
    stop: ({ pid }) => ns.kill(pid),
    async wait({ ms }) {
      await ns.sleep(ms);
    },
    __proto__: null,
  };
  port.clear();
  while (true) {
    if (port.empty()) await port.nextWrite();
    const raw = port.peek() === EMPTY ? null : port.read();
    if (raw === null) continue;
    const { kind, ...rest } = typeof raw === "string" ? JSON.parse(raw) : raw;
    if (kind === "quit") break;
    const reply = await handlers[kind]?.(rest);
    if (!port.full()) ns.writePort(4, JSON.stringify({ kind, reply }));
  }
}
