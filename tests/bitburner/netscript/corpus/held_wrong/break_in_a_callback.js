// The game: does not start: syntax error
export async function main(ns) {
  ns.scan("home").forEach((host) => {
    if (host === "n00dles") break;
    ns.print(host);
  });
}
