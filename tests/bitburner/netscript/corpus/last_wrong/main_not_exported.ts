// The game: does not start, main function could not be found
async function main(ns: NS): Promise<void> {
  ns.disableLog("ALL");
  ns.ui.openTail();
  await ns.sleep(1000);
}
