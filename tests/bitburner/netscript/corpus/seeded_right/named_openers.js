// The game: works
export async function main(ns) {
  const openers = { brutessh: ns.brutessh, ftpcrack: ns.ftpcrack };
  for (const opener of ["brutessh", "ftpcrack"]) ns[opener]("n00dles");
  ns.print(Object.keys(openers));
}
