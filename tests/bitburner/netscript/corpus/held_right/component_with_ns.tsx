// The game: works
import { NS } from "@ns";
function Hosts({ ns, from = "home" }: { ns: NS; from?: string }) {
  return <ul>{ns.scan(from).map((host) => <li key={host}>{host}</li>)}</ul>;
}
export async function main(ns: NS) {
  ns.printRaw(<Hosts ns={ns} />);
  ns.tprintRaw(<><Hosts ns={ns} from="n00dles" /></>);
}
