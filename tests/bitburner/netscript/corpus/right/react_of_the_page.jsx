// The game: works
export async function main(ns) {
  const Counter = () => {
    const [count, setCount] = React.useState(0);
    return <button onClick={() => setCount(count + 1)}>{count}</button>;
  };
  ns.tprintRaw(<Counter />);
}
