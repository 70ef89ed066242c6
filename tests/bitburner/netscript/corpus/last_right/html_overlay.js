// The game: runs
export async function main(ns) {
  const doc = eval("document");
  const hook0 = doc.getElementById("overview-extra-hook-0");
  const hook1 = doc.getElementById("overview-extra-hook-1");
  ns.atExit(() => {
    hook0.innerText = "";
    hook1.innerText = "";
  });
  while (true) {
    const [total, ...rest] = ns.getTotalScriptIncome();
    hook0.innerText = ["Income", "Karma"].join("\n");
    hook1.innerText = [ns.formatNumber(total), ns.heart.break(), rest.length].join("\n");
    await ns.sleep(1000);
  }
}
