// The game: concurrent calls to Netscript functions, runtime error
export async function main(ns) {
  while (true) {
    ns.sleep(1000);
    ns.print(ns.getHackingLevel());
    await ns.grow("n00dles");
  }
}
