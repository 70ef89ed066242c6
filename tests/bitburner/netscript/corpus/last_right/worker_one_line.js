// The game: runs
export const main = async ns => { while (await ns.sleep(ns.args[1] || 0), true) await ns[ns.args[0]](ns.args[2]) };
