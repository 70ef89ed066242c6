"""RAM: what a script costs, in GB: a base, and once for each function of the game that it names.

A simple model of the game's: a name counts wherever it stands outside of strings and comments, and an import
brings everything that the imported script names, where the game counts only what is reached.
"""

from __future__ import annotations

from .names import is_script, resolve
from .script import BrokenScript, read
from .world import World

BASE = 1.6
_PAGE = 25.0
_MARKUP = (".jsx", ".tsx")

_COSTS_BY_PRICE = {
    0.05: "getHostname getHackingLevel getServerMaxRam getServerUsedRam hasRootAccess nuke brutessh ftpcrack "
    "relaysmtp httpworm sqlinject hasTorRouter getServerNumPortsRequired getHackTime getGrowTime "
    "getWeakenTime getPurchasedServerLimit getPurchasedServerMaxRam getTotalScriptIncome",
    0.1: "hack getServerMoneyAvailable getServerMaxMoney getServerGrowth getServerSecurityLevel serverExists "
    "getServerMinSecurityLevel getServerRequiredHackingLevel fileExists isRunning getScriptRam "
    "getScriptIncome",
    0.15: "grow weaken",
    0.2: "scan ps ls getRecentScripts",
    0.25: "getPurchasedServerCost",
    0.3: "getRunningScript",
    0.5: "getPlayer kill killall",
    0.6: "scp",
    1.0: "run hackAnalyze hackAnalyzeThreads hackAnalyzeChance hackAnalyzeSecurity growthAnalyze "
    "growthAnalyzeSecurity weakenAnalyze rm",
    1.05: "getPurchasedServers",
    1.3: "exec",
    2.0: "spawn getServer",
    2.25: "purchaseServer deleteServer",
    4.0: "getBitNodeMultipliers",
    # Functions of the singularity cost sixteen times as much outside of their own BitNode.
    32.0: "connect manualHack installBackdoor getCurrentServer goToLocation travelToCity purchaseTor "
    "purchaseProgram",
    80.0: "joinFaction workForFaction donateToFaction applyToCompany upgradeHomeRam purchaseAugmentation "
    "installAugmentations",
    _PAGE: "window document",
}
COSTS = {name: price for price, names in _COSTS_BY_PRICE.items() for name in names.split()}


def cost(world: World, host: str, path: str) -> float:
    """Return the cost of a script that is there; raises BrokenScript, also where an import is missing."""
    names: set[str] = set()
    seen: set[str] = set()
    waiting = [path]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            script = read(_source(world, host, current), has_markup=current.endswith(_MARKUP))
            names |= script.names
            waiting += [_imported(name) for name in script.imports]
    total = round(BASE + sum(COSTS.get(name, 0.0) for name in names), 2)
    return int(total) if total.is_integer() else total


def _source(world: World, host: str, path: str) -> str:
    source = world.servers[host].get(path)
    if source is None:
        raise BrokenScript(f"{path} is imported and missing")
    return source


def _imported(name: str) -> str:
    """Return the path of an import, whose extension may be left out."""
    path = resolve(name) or resolve(f"{name}.js")
    if path is None or not is_script(path):
        raise BrokenScript(f"{name} is no script")
    return path
