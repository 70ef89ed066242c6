// The game: works
const schema = [
  ["target", "n00dles"],
  ["threads", 1],
  ["loop", false],
  ["hosts", []],
];

export function autocomplete(data, args) {
  data.flags(schema);
  if (args.includes("--target")) return [...data.servers];
  return [...data.servers, ...data.scripts, "--loop"];
}

/** @param {NS} ns */
export async function main(ns) {
  const options = ns.flags(schema);
  if (options.help || options._.length > 1) {
    ns.tprint(`usage: run ${ns.getScriptName()} --target HOST`);
    return;
  }
  const target = options._[0] ?? options.target;
  do {
    await ns.hack(target, { threads: Math.min(options.threads, 4) });
  } while (options.loop);
}
