// The game: works
export async function main(ns) {
  const draw = () => {
    const ns = "http://www.w3.org/2000/svg";
    return ns.startsWith("http") && ns.length;
  };
  ns.print(draw());
}
