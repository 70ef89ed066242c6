// The game: works
export async function main(ns) {
  const read = ns["get" + "Server"];
  ns.print(read("home").maxRam);
  const part = "sleeve";
  ns.print(ns[part].getNumSleeves());
}
