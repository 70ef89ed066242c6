"""Scripts as they are checked, against definitions like the game's."""

from bridgehead.bitburner.netscript.checking import Problem, check_script
from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.search import DefinitionSearch
from bridgehead.bitburner.simulator.definitions import definitions

DEFINITIONS = Definitions(definitions())


SEARCH = DefinitionSearch(DEFINITIONS)


def check(source: str, filename: str = "a.js") -> list[Problem]:
    return check_script(source, filename, DEFINITIONS, SEARCH)


def unknown(source: str, filename: str = "a.js") -> list[str]:
    return [one.message.split()[0] for one in check(source, filename) if one.code == "unknown_api"]


def in_main(body: str) -> str:
    return f"export async function main(ns) {{\n{body}\n}}\n"
