// The game: travelToCity: not a city, runtime error
export async function main(ns) {
  ns.singularity.travelToCity(ns.enums.CityName.NewYork);
}
