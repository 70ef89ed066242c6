// The game: works
export async function main(ns) {
  const actions = { hack: ns.hack, grow: ns.grow, weaken: ns.weaken };
  for (const [name, action] of Object.entries(actions)) {
    ns.print(name);
    await action("n00dles", { threads: 1 });
  }
}
