// The game: fails at line 4, dynamic RAM usage
export async function main(ns) {
  for (const opener of ["brutessh", "ftpcrack"]) {
    ns[opener]("n00dles");
  }
}
