// The game: flags schema passed in is invalid
export async function main(ns) {
  const options = ns.flags({ target: "n00dles", threads: 1 });
  await ns.hack(options.target, { threads: options.threads });
}
