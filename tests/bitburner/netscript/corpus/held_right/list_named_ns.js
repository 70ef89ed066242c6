// The game: works
function mean(ns) {
  return ns.reduce((sum, n) => sum + n, 0) / ns.length;
}
export async function main(api) {
  const levels = [1, 2, 3];
  api.print(mean(levels), mean([4, 5].map((n) => n * 2)));
}
