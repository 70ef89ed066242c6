// The game: runs
type City = `${CityName}`;
const cities = ["Sector-12", "Aevum"] as const satisfies readonly City[];

export async function main(ns: NS): Promise<void> {
  const corp = ns.corporation;
  while (true) {
    while (corp.getCorporation().prevState !== "START") await corp.nextUpdate();
    for (const { name, cities: offices } of corp.getCorporation().divisions.map((it) => corp.getDivision(it))) {
      for (const city of cities) {
        if (!offices.includes(city as any)) continue;
        const office = corp.getOffice(name, city as any);
        if (office.avgEnergy < office.maxEnergy * 0.98) corp.buyTea(name, city as any);
      }
    }
    await corp.nextUpdate();
  }
}
