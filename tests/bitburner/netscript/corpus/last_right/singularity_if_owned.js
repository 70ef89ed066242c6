// The game: runs
export async function main(ns) {
  const owned = ns.getResetInfo().ownedSF;
  const sing = ns["singularity"];
  if ((owned.get(4) ?? 0) < 1) return;
  const { commitCrime, getCrimeChance } = sing;
  const crime = getCrimeChance("Homicide") > 0.7 ? "Homicide" : "Mug";
  while (sing.isBusy()) await ns.sleep(100);
  await ns.sleep(commitCrime(crime));
}
