// The game: runs
const OPTIONS = [["target", "n00dles"], ["dry-run", false], ["servers", []]];

export function autocomplete(data, args) {
  data.flags(OPTIONS);
  return [...data.servers, ...data.scripts.filter((name) => name.startsWith(args.at(-1) ?? ""))];
}

export const main = async (ns) => {
  const flags = ns.flags(OPTIONS);
  if (flags["dry-run"]) return ns.tprint(flags.servers, flags._);
  await ns.hack(flags.target);
};
