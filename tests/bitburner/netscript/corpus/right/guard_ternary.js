// The game: works
export async function main(ns) {
  const buy = ns.cloud ? ns.cloud.buy : null;
  if (buy) buy("n00dles");
}
