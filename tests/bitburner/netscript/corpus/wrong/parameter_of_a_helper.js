// The game: TypeError: api.getHost is not a function
function where(api) {
  return api.getHost();
}
export async function main(ns) {
  ns.tprint(where(ns));
}
