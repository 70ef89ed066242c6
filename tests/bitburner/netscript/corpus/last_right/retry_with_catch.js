// The game: runs
export async function main(ns) {
  outer: while (true) {
    try {
      ns.singularity.joinFaction("CyberSec");
      for (const name of ns.singularity.checkFactionInvitations()) {
        if (name === "Illuminati") break outer;
      }
      ns.oldName?.();
    } catch (error) {
      if (error instanceof Error || /RAM/i.test(`${error}`)) ns.print(error?.message ?? error);
      else throw error;
    } finally {
      await ns.sleep(2e3);
    }
  }
}
