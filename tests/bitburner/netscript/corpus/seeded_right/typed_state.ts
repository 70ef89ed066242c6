// The game: works
interface Hosts { [key: string]: { ram: number } }
type Player = import("@ns").Player;
declare const injected: { level: number };
enum Mode { fast, slow }
namespace Tools { export const size = 3; }
function pick<T extends object>(items: T[], by: keyof T): T { return items[0] ?? ({ by } as never); }
export async function main(ns: NS): Promise<void> {
  const hosts: Hosts = { home: { ram: 8 } };
  const player: Player = ns.getPlayer();
  ns.print(hosts["home"].ram, Mode.fast, Tools.size, injected.level, player.money, pick([hosts], "home"));
}
