// The game: works
import { NS } from "@ns";
enum Mode { Idle, Busy = "busy" }
const mode: Mode = Mode.Idle;
export async function main(ns: NS): Promise<void> {
  const city = ns.enums.CityName.Aevum;
  if (mode === Mode.Idle) ns.singularity.travelToCity(city);
  ns.print(Object.values(ns.enums.CrimeType).length, Mode[0]);
}
