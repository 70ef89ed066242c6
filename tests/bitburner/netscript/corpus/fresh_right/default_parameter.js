// The game: works
export async function main(ns, target = "n00dles") {
  const visit = async (host, depth = 0) => {
    if (depth < 2) for (const next of ns.scan(host)) await visit(next, depth + 1);
  };
  await visit(target);
}
