// The game: nuke: Missing hostname argument
export async function main(ns: NS): Promise<void> {
  const hosts: string[] = ns.scan();
  hosts.forEach((host) => {
    if (ns.fileExists("BruteSSH.exe")) ns.brutessh(host);
    if (!ns.hasRootAccess(host)) ns.nuke();
  });
}
