"""RAM: what a script costs, in GB: a base, and once for each function of the game that it names.

A simple model of the game's: a name counts wherever it stands outside of strings and comments, and an import
brings everything that the imported script names, where the game counts only what is reached.
"""

from __future__ import annotations

import re

from msgspec import Struct

from .paths import is_script, resolve
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


_TOKEN = re.compile(
    r"""
    (?P<skipped> \s+ | //[^\n]* | /\*[\s\S]*?\*/ )
  | (?P<string> "(?:\\[\s\S]|[^"\\\n])*" | '(?:\\[\s\S]|[^'\\\n])*' )
  | (?P<name> [A-Za-z_$][\w$]* )
  | (?P<open> [({\[`] )
  | (?P<close> [)}\]] )
  | (?P<broken> /\* | ["'] )
  | (?P<other> \d[\w.]* | [\s\S] )
    """,
    re.VERBOSE,
)
_TEMPLATE_TEXT = re.compile(r"(?:\\[\s\S]|\$(?!\{)|[^`\\$])*")
_EXPRESSION = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
_BEFORE_EXPRESSION = frozenset("(,=:[!&|?{};+-*%<>~^") | {"", "return", "typeof", "case"}
_PAIRS = {"(": ")", "[": "]", "{": "}", "`": "`"}
_IMPORT = re.compile(
    r"""^\s*(?:import\b|export\s*(?:\*|\{[^}"']*\})[^"';]*?\bfrom\b)[^"'();]*["'](?P<path>[^"'\n]+)["']""",
    re.MULTILINE,
)


class BrokenScript(Exception):
    """The source cannot be a script."""


class Script(Struct, frozen=True):
    """What counts of a source."""

    names: frozenset[str]
    imports: tuple[str, ...]


def read(source: str, *, has_markup: bool) -> Script:
    """Read a source; raises BrokenScript. Markup (jsx, tsx) may hold a lone quote in its text."""
    reading = _Reading(source, has_markup=has_markup)
    while reading.at < len(source):
        reading.step()
    if reading.expected:
        raise BrokenScript(f"{reading.expected[-1]} is missing at the end")
    imports = tuple(found["path"] for found in _IMPORT.finditer(source))
    return Script(frozenset(reading.names), imports)


class _Reading:
    """How far a source is read, what is still open, and what was before: it decides what a slash means."""

    def __init__(self, source: str, *, has_markup: bool) -> None:
        self.at = 0
        self.names: set[str] = set()
        self.expected: list[str] = []
        self._source = source
        self._before = ""
        self._has_markup = has_markup

    def step(self) -> None:
        """Go on by one token."""
        if self.expected[-1:] == ["`"]:
            self._template()
        elif self._before in _BEFORE_EXPRESSION and (found := _EXPRESSION.match(self._source, self.at)):
            self._before, self.at = "/", found.end()
        elif token := _TOKEN.match(self._source, self.at):
            self.at = token.end()
            if token.lastgroup != "skipped":
                self._before = token[0]
                self._take(token)

    def _take(self, token: re.Match[str]) -> None:
        match token.lastgroup:
            case "name":
                self.names.add(token[0])
            case "open":
                self.expected.append(_PAIRS[token[0]])
            case "close":
                if not self.expected or self.expected.pop() != token[0]:
                    raise BrokenScript(f"{token[0]} closes nothing")
            case "broken" if not self._has_markup:
                raise BrokenScript(f"{token[0]} stays open")

    def _template(self) -> None:
        """Go over the text of a template up to its end or to the code in it."""
        text = _TEMPLATE_TEXT.match(self._source, self.at)
        self.at = text.end() if text else self.at
        if self._source.startswith("${", self.at):
            self.expected.append("}")
            self.at += 2
        elif self._source.startswith("`", self.at):
            self.expected.pop()
            self.at += 1
        else:
            raise BrokenScript("a template stays open")
