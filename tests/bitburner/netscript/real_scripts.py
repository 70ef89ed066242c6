"""Scripts as people write them: bodies of many kinds, each in several styles. All of them are right."""

BODIES = {
    "early": """
const target = ns.args[0] ?? "n00dles";
const moneyThresh = ns.getServerMaxMoney(target) * 0.75;
const securityThresh = ns.getServerMinSecurityLevel(target) + 5;
while (true) {
  if (ns.getServerSecurityLevel(target) > securityThresh) await ns.weaken(target);
  else if (ns.getServerMoneyAvailable(target) < moneyThresh) await ns.grow(target);
  else await ns.hack(target);
}""",
    "scan": """
const seen = new Set(["home"]);
const queue = ["home"];
while (queue.length) {
  const host = queue.shift();
  for (const next of ns.scan(host)) {
    if (!seen.has(next)) { seen.add(next); queue.push(next); }
  }
}
ns.tprint([...seen].sort().join("\\n"));""",
    "crack": """
const openers = [
  ["BruteSSH.exe", ns.brutessh],
  ["FTPCrack.exe", ns.ftpcrack],
  ["relaySMTP.exe", ns.relaysmtp],
];
for (const host of ns.scan("home")) {
  let open = 0;
  for (const [file, opener] of openers) {
    if (ns.fileExists(file, "home")) { opener(host); open += 1; }
  }
  if (ns.getServerNumPortsRequired(host) <= open && !ns.hasRootAccess(host)) ns.nuke(host);
}
ns.tprint(`done: ${ns.getHackingLevel()}`);""",
    "buy": """
let ram = 8;
let i = ns.getPurchasedServers().length;
while (i < ns.getPurchasedServerLimit()) {
  if (ns.getServerMoneyAvailable("home") > ns.getPurchasedServerCost(ram)) {
    const name = ns.purchaseServer("pserv-" + i, ram);
    ns.scp(["hack.js", "grow.js"], name);
    ns.exec("hack.js", name, Math.floor(ram / 1.75), "n00dles");
    i += 1;
  }
  await ns.sleep(1000);
}""",
    "batch": """
ns.disableLog("ALL");
const host = ns.getHostname();
const { max, used } = { max: ns.getServerMaxRam(host), used: ns.getServerUsedRam(host) };
const cost = ns.getScriptRam("weaken.js", host);
const threads = Math.max(1, Math.floor((max - used) / cost));
const times = { hack: ns.getHackTime("x"), grow: ns.getGrowTime("x"), weaken: ns.getWeakenTime("x") };
for (let n = 0; n < 5; n++) {
  const pid = ns.run("weaken.js", { threads, temporary: true }, "x", times.weaken - times.hack, n);
  if (pid === 0) ns.print(`WARN: no room for batch ${n}`);
}
const ratio = ns.hackAnalyze("x") * ns.hackAnalyzeThreads("x", 1e6);
ns.tprint(ratio, ns.growthAnalyze("x", 2), ns.weakenAnalyze(1));""",
    "stock": """
const symbols = ns.stock.getSymbols();
const held = symbols.map((sym) => ({ sym, position: ns.stock.getPosition(sym) }));
for (const { sym, position: [shares] } of held) {
  const forecast = ns.stock.has4SDataTIXAPI() ? ns.stock.getForecast(sym) : 0.5;
  if (shares > 0 && forecast < 0.5) ns.stock.sellStock(sym, shares);
  else if (forecast > 0.6) ns.stock.buyStock(sym, Math.min(100, ns.stock.getMaxShares(sym)));
}
ns.tprint(held.length);""",
    "singularity": """
const { singularity } = ns;
if (!singularity.isBusy()) singularity.universityCourse("Rothman University", "Algorithms", false);
for (const faction of singularity.checkFactionInvitations()) singularity.joinFaction(faction);
const owned = new Set(singularity.getOwnedAugmentations(true));
const wanted = singularity.getAugmentationsFromFaction("CyberSec").filter((aug) => !owned.has(aug));
wanted.forEach((aug) => singularity.purchaseAugmentation("CyberSec", aug));
await singularity.installBackdoor();""",
    "hacknet": """
const hn = ns.hacknet;
for (let i = 0; i < hn.numNodes(); i++) {
  const { level, ram, cores } = hn.getNodeStats(i);
  if (level < 200) hn.upgradeLevel(i, 10);
  if (ram < 64 && hn.getRamUpgradeCost(i, 1) < 1e6) hn.upgradeRam(i, 1);
  if (cores < 16) hn.upgradeCore(i);
}
if (hn.getPurchaseNodeCost() < ns.getPlayer().money) hn.purchaseNode();
ns.tprint("nodes " + hn.numNodes());""",
    "contracts": """
const found = [];
for (const host of ns.scan()) {
  for (const file of ns.ls(host, ".cct")) {
    const type = ns.codingcontract.getContractType(file, host);
    const data = ns.codingcontract.getData(file, host);
    found.push({ host, file, type, data });
  }
}
const solvers = {
  "Find Largest Prime Factor": (n) => { let f = 2; while (n > f) n % f ? f++ : (n /= f); return f; },
};
for (const { host, file, type, data } of found) {
  const reward = solvers[type] ? ns.codingcontract.attempt(solvers[type](data), file, host) : "";
  if (reward) ns.tprint(`SUCCESS ${host} ${file}: ${reward}`);
}""",
    "gang": """
const members = ns.gang.getMemberNames();
while (ns.gang.canRecruitMember()) ns.gang.recruitMember("m" + members.length);
for (const name of members) {
  const info = ns.gang.getMemberInformation(name);
  const gain = ns.gang.getAscensionResult(name);
  if (gain && gain.str > 1.5) ns.gang.ascendMember(name);
  ns.gang.setMemberTask(name, info.str > 100 ? "Human Trafficking" : "Train Combat");
}
ns.gang.setTerritoryWarfare(false);
ns.tprint(ns.gang.getGangInformation().respect);""",
    "ports": """
const port = ns.getPortHandle(1);
port.clear();
port.write(JSON.stringify({ from: ns.getHostname(), pid: ns.pid }));
while (!port.empty()) {
  const message = JSON.parse(port.read());
  ns.print(message.from);
}
ns.writePort(2, "x"); ns.peek(2); ns.readPort(2); ns.clearPort(2);
ns.tprint("port");""",
    "files": """
const config = ns.fileExists("config.txt") ? JSON.parse(ns.read("config.txt")) : { runs: 0 };
config.runs += 1;
ns.write("config.txt", JSON.stringify(config), "w");
await ns.wget("https://example.org/a.js", "a.js");
for (const file of ns.ls("home", "tmp/")) ns.rm(file, "home");
ns.mv("home", "a.js", "b.js");
ns.tprint(config.runs);""",
    "flags": """
const flags = ns.flags([["target", "n00dles"], ["threads", 1], ["loop", false]]);
if (flags.help) { ns.tprint("usage"); return; }
ns.atExit(() => ns.toast("bye", "info", 2000));
const answer = await ns.prompt("Go on?", { type: "boolean" });
if (!answer) ns.exit();
ns.tprintf("%s", String(flags.target));""",
    "processes": """
for (const proc of ns.ps("home")) {
  if (proc.filename !== ns.getScriptName() && proc.threads > 1) ns.kill(proc.pid);
}
const running = ns.getRunningScript();
ns.print(running?.filename, running?.args, ns.isRunning("a.js", "home"));
ns.killall("home", true);
ns.spawn("next.js", { threads: 1, spawnDelay: 500 }, ...ns.args);
ns.tprint(ns.getScriptName());""",
    "formulas": """
const player = ns.getPlayer();
const server = ns.getServer("n00dles");
server.hackDifficulty = server.minDifficulty;
const chance = ns.formulas.hacking.hackChance(server, player);
const percent = ns.formulas.hacking.hackPercent(server, player);
const growth = ns.formulas.hacking.growPercent(server, 10, player, 1);
ns.tprint(ns.formatNumber(chance * percent), growth, ns.formatPercent(chance));""",
    "corporation": """
const corp = ns.corporation;
const { divisions, funds } = corp.getCorporation();
for (const division of divisions) {
  for (const city of corp.getDivision(division).cities) {
    const office = corp.getOffice(division, city);
    if (office.numEmployees < office.size) corp.hireEmployee(division, city);
    if (corp.hasWarehouse(division, city)) corp.setSmartSupply(division, city, true);
  }
}
ns.tprint(funds > 1e9 ? corp.getInvestmentOffer().round : "poor");""",
    "recursion": """
const paths = {};
const visit = (host, path) => {
  paths[host] = path;
  for (const next of ns.scan(host)) if (!(next in paths)) visit(next, [...path, next]);
};
visit("home", []);
const best = Object.keys(paths)
  .filter((host) => ns.hasRootAccess(host) && ns.getServerRequiredHackingLevel(host) <= ns.getHackingLevel())
  .map((host) => ({ host, score: ns.getServerMaxMoney(host) / ns.getWeakenTime(host) }))
  .reduce((a, b) => (a.score > b.score ? a : b), { host: "", score: 0 });
ns.tprint(best.host, " via ", paths[best.host]?.join(" > "));""",
    "sleeves": """
for (let i = 0; i < ns.sleeve.getNumSleeves(); i++) {
  const { shock, sync } = ns.sleeve.getSleeve(i);
  if (shock > 0) ns.sleeve.setToShockRecovery(i);
  else if (sync < 100) ns.sleeve.setToSynchronize(i);
  else ns.sleeve.setToCommitCrime(i, "Homicide");
}
try { ns.bladeburner.startAction("General", "Training"); } catch (error) { ns.print(String(error)); }
ns.tprint(ns.heart.break());""",
    "page": """
const doc = eval("document");
const hook = doc.getElementById("overview-extra-hook-0");
const rows = { Income: () => ns.getTotalScriptIncome()[0], Karma: () => ns.getPlayer().karma };
while (true) {
  hook.innerText = Object.values(rows).map((row) => row().toFixed(2)).join("\\n");
  await ns.asleep(1000);
}""",
    "generators": """
function* hosts() { yield* ns.scan("home"); }
const async_ = async () => { await ns.sleep(10); return ns.getServer("home")?.maxRam ?? 0; };
label: for (const host of hosts()) {
  switch (true) {
    case host.startsWith("pserv"): continue label;
    default: ns.print(host, /n[0-9]+dles/.test(host), await async_());
  }
}
const { length: count, ...rest } = ns.getPurchasedServers();
ns.tprint(count, rest, ns["getHostname"](), ns.getServerGrowth?.("home"));""",
}
MAIN = "export async function main(ns) {{{body}\n}}\n"


def list_scripts() -> dict[str, str]:
    """Return every body in every style, by a file name that fits."""
    scripts: dict[str, str] = {}
    for name, body in BODIES.items():
        plain = MAIN.format(body=body.replace("\n", "\n  "))
        scripts |= {
            f"{name}/plain.js": plain,
            f"{name}/documented.js": f"/** @param {{NS}} ns */\n{plain}",
            f"{name}/arrow.js": f"export const main = async (ns) => {{{body}\n}};\n",
            f"{name}/renamed.js": _rename(plain, "bb"),
            f"{name}/helper.js": "export async function main(ns) { await work(ns); }\n"
            f"async function work(ns) {{{body}\n}}\n",
            f"{name}/passed.js": "export async function main(ns) { await work(ns, 1); }\n"
            + _rename(f"async function work(ns, n) {{{body}\n}}\n", "api"),
            f"{name}/global.js": "let ns;\nexport async function main(n) { ns = n; await go(); }\n"
            f"async function go() {{{body}\n}}\n",
            f"{name}/classy.js": "class Job {\n  constructor(ns) { this.ns = ns; }\n"
            f"  async run() {{\n    const ns = this.ns;{body}\n  }}\n}}\n"
            "export async function main(ns) { await new Job(ns).run(); }\n",
            f"{name}/typed.ts": "import { NS } from '@ns';\n"
            f"export async function main(ns: NS): Promise<void> {{\n  // @ts-nocheck{body}\n}}\n",
            f"{name}/imports.js": "import { helper } from './lib/helper.js';\n"
            "import * as lib from 'lib/all';\n"
            f"{plain}export {{ helper }};\n",
            f"{name}/semicolons.js": plain.replace(";\n", "\n"),
        }
    return scripts


def _rename(source: str, name: str) -> str:
    return (
        source.replace("ns.", f"{name}.")
        .replace("(ns)", f"({name})")
        .replace("(ns,", f"({name},")
        .replace("= ns;", f"= {name};")
        .replace('ns["', f'{name}["')
    )
