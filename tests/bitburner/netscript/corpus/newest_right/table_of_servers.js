// The game: works: players add fields of their own to what the game returns
export async function main(ns) {
  const servers = [];
  const parents = { home: null };
  const queue = ["home"];
  for (const name of queue) {
    const server = ns.getServer(name);
    server.depth = parents[name] ? servers.find((s) => s.hostname === parents[name]).depth + 1 : 0;
    servers.push(server);
    for (const next of ns.scan(name)) {
      if (next in parents) continue;
      parents[next] = name;
      queue.push(next);
    }
  }
  const rated = servers.map((server) => ({ ...server, score: server.moneyMax / server.minDifficulty }));
  rated.sort((a, b) => b.score - a.score);
  for (const { hostname, score, depth } of rated.slice(0, 10)) ns.tprint(`${" ".repeat(depth)}${hostname} ${score}`);
  const player = ns.getPlayer();
  player.skills.hacking *= 2;
  player.label ??= "twice as good";
  ns.tprint(player.label);
}
