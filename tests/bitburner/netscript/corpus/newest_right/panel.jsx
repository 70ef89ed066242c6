// The game: works
const doc = eval("document");

function Row({ host, money, children }) {
  const [open, setOpen] = React.useState(false);
  return (
    <tr onClick={() => setOpen(!open)} style={{ color: open ? "lime" : "gray" }}>
      <td>{host}</td>
      <td>{money.toFixed(0)}</td>
      {open && <td>{children}</td>}
    </tr>
  );
}

export async function main(ns) {
  const rows = ns.scan().map((host) => (
    <Row key={host} host={host} money={ns.getServerMoneyAvailable(host)}>
      <>{ns.getServerMaxRam(host)} GB</>
    </Row>
  ));
  ns.tprintRaw(<table>{rows}</table>);
  const hook = doc.getElementById("overview-extra-hook-0");
  if (hook) hook.innerText = ns.getScriptName();
  ns.atExit(() => {
    if (hook) hook.innerHTML = "";
  });
  await ns.asleep(60_000);
}
