"""Checking: what a script will fail at when it runs, and what the game takes without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from .parsing import count_characters, find_syntax_problem
from .scripts import ApiUse, Script

if TYPE_CHECKING:
    from .definitions import Definitions
    from .search import DefinitionSearch

_MOST_PROBLEMS = 20
_MOST_NAMES = 3
_OF_EVERY_OBJECT = frozenset(
    {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"}
    | {"valueOf", "__proto__"}
)
_UNDOCUMENTED = frozenset(
    {"alterReality", "bypass", "dynamicImport", "exploit", "heart", "iKnowWhatImDoing", "openDevMenu"}
    | {"printRaw", "rainbow", "tprintRaw", "break", "factionGains", "hacknetNodes"}
)
"""What the game has and its definitions leave out on purpose."""


class Problem(Struct, frozen=True):
    """Something that will fail when the script runs."""

    code: str
    message: str
    line: int
    column: int


def check_script(
    source: str, filename: str, definitions: Definitions, search: DefinitionSearch
) -> list[Problem]:
    """Return the syntax error of a script, or the functions that it uses and the API does not have."""
    script = Script(source, filename, definitions)
    broken = find_syntax_problem(script.root)
    if broken is not None:
        column = count_characters(source, broken.line, broken.column)
        return [Problem("syntax_error", f"Syntax error: {broken.message}.", broken.line, column)]
    if filename.endswith(".script") or not definitions.namespaces or not definitions.members.get("NS"):
        return []  # NS1 has its functions without ns, and without definitions nothing is certain
    unknown = {use.path: use for use in reversed(script.find_uses()) if _is_unknown(use, definitions)}
    ordered = sorted(unknown.values(), key=lambda use: (use.line, use.column))[:_MOST_PROBLEMS]
    return [_describe(use, source, definitions, search) for use in ordered]


def _is_unknown(use: ApiUse, definitions: Definitions) -> bool:
    if use.is_guarded or use.name in _OF_EVERY_OBJECT or use.name in _UNDOCUMENTED:
        return False
    return use.name not in definitions.members[definitions.namespaces[use.parent]]


def _describe(use: ApiUse, source: str, definitions: Definitions, search: DefinitionSearch) -> Problem:
    interface = definitions.namespaces[use.parent]
    near = [f"{use.parent}.{name}".lstrip(".") for name in search.suggest(use.name, interface, _MOST_NAMES)]
    elsewhere = [path for path, _ in definitions.functions_by_name.get(use.name, ())]
    shown = [_show(path, definitions) for path in dict.fromkeys([*elsewhere[:_MOST_NAMES], *near])]
    offered = f" Nearest: {'; '.join(shown[:_MOST_NAMES])}." if shown else ""
    column = count_characters(source, use.line, use.column)
    return Problem("unknown_api", f"ns.{use.path} does not exist.{offered}", use.line, column)


def _show(path: str, definitions: Definitions) -> str:
    declaration = definitions.find_path(path)
    parent = path.rpartition(".")[0]
    prefix = f"ns.{parent}." if parent else "ns."
    signature = " ".join(declaration.signature.split()) if declaration is not None else path
    return f"{prefix}{signature.removeprefix('readonly ').removesuffix(';')}"
