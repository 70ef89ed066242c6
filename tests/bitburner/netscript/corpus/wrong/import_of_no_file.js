// The game: Invalid module, the script does not start
import { connect } from "lib/network.js";
export async function main(ns) {
  connect(ns, "n00dles");
}
