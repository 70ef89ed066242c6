// The game: runs
function Row({ host, ns }) {
  const [money, setMoney] = React.useState(0);
  React.useEffect(() => {
    const timer = setInterval(() => setMoney(ns.getServerMoneyAvailable(host)), 500);
    return () => clearInterval(timer);
  }, [host]);
  return <li style={{ color: ns.ui.getTheme().money }}>{host}: {money}</li>;
}

export async function main(ns) {
  ns.printRaw(<ul>{ns.scan().map((host) => <Row key={host} host={host} ns={ns} />)}</ul>);
  await new Promise(() => {});
}
