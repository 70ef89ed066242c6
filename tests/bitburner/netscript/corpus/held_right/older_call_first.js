// The game: works
export async function main(ns) {
  try {
    ns.tail();
    ns.moveTail(10, 10);
  } catch (error) {
    ns.ui.openTail();
    ns.print(String(error));
  }
}
