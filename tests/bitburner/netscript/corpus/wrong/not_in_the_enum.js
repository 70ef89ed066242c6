// The game: travelToCity: invalid city, runtime error
export async function main(ns) {
  ns.singularity.travelToCity("Paris");
}
