// The game: works: the functions exist, and failing is caught
function canAutomate(ns) {
  const { currentNode, ownedSF } = ns.getResetInfo();
  return currentNode === 4 || ownedSF.has(4);
}

function attempt(action, fallback = null) {
  try {
    return action();
  } catch {
    return fallback;
  }
}

export async function main(ns) {
  if (!canAutomate(ns)) return ns.tprint("no singularity");
  const { singularity: sing } = ns;
  const factions = attempt(() => sing.checkFactionInvitations(), []);
  for (const faction of factions) sing.joinFaction(faction);
  const wanted = attempt(() => sing.getAugmentationsFromFaction(factions[0])) ?? [];
  const cheapest = wanted
    .map((name) => ({ name, price: sing.getAugmentationPrice(name), rep: sing.getAugmentationRepReq(name) }))
    .sort((a, b) => a.price - b.price || a.rep - b.rep)
    .at(0);
  if (cheapest) ns.tprint(cheapest.name);
}
