// The game: TypeError: ns.gang.setMembertask is not a function
export async function main(ns) {
  for (const name of ns.gang.getMemberNames()) {
    const info = ns.gang.getMemberInformation(name);
    ns.gang.setMembertask(name, info.hack > 100 ? "Money Laundering" : "Train Hacking");
  }
}
