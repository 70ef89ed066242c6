"""Checking: find problems that a script will have when it runs; the game accepts such a file silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from .parsing import count_characters, find_syntax_problem
from .scripts import ApiUse, Script

if TYPE_CHECKING:
    from .definitions import Definitions
    from .search import DefinitionSearch

_MAX_PROBLEMS = 20
_MAX_NAMES = 3
_OF_EVERY_OBJECT = frozenset(
    {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"}
    | {"valueOf", "__proto__"}
)
_UNDOCUMENTED = frozenset(
    {"alterReality", "bypass", "dynamicImport", "exploit", "heart", "iKnowWhatImDoing", "openDevMenu"}
    | {"printRaw", "rainbow", "tprintRaw", "break", "factionGains", "hacknetNodes"}
)
"""Functions that the game has and its definitions leave out on purpose."""


class Problem(Struct, frozen=True):
    """Something that will fail when the script runs."""

    code: str
    message: str
    line: int
    column: int


def check_script(
    source: str, filename: str, definitions: Definitions, search: DefinitionSearch
) -> list[Problem]:
    """Return the syntax error of a script, or its uses of functions that the API does not have."""
    script = Script(source, filename, definitions)
    broken = find_syntax_problem(script.root)
    if broken is not None:
        column = count_characters(source, broken.line, broken.column)
        return [Problem("syntax_error", f"Syntax error: {broken.message}.", broken.line, column)]
    if filename.endswith(".script") or not definitions.namespaces or not definitions.members.get("NS"):
        # A `.script` file is NS1, where functions are globals; without definitions nothing is certain.
        return []
    unknown: dict[str, ApiUse] = {}
    for use in script.find_uses():
        is_certain = not use.is_guarded and use.name not in _OF_EVERY_OBJECT | _UNDOCUMENTED
        if is_certain and use.name not in definitions.members[definitions.namespaces[use.parent]]:
            unknown.setdefault(use.path, use)  # a name that is used often is reported once
    ordered = sorted(unknown.values(), key=lambda use: (use.line, use.column))[:_MAX_PROBLEMS]
    return [_describe_unknown(use, source, definitions, search) for use in ordered]


def _describe_unknown(
    use: ApiUse, source: str, definitions: Definitions, search: DefinitionSearch
) -> Problem:
    """Suggest functions of that name in other namespaces first, then similar names."""
    # `ns.connect` most likely means `ns.singularity.connect`, the same name elsewhere.
    interface = definitions.namespaces[use.parent]
    near = [f"{use.parent}.{name}".lstrip(".") for name in search.suggest(use.name, interface, _MAX_NAMES)]
    elsewhere = [path for path, _ in definitions.functions_by_name.get(use.name, ())]
    shown = []
    for path in list(dict.fromkeys([*elsewhere[:_MAX_NAMES], *near]))[:_MAX_NAMES]:
        declaration = definitions.find_path(path)
        parent = path.rpartition(".")[0]
        signature = " ".join(declaration.signature.split()) if declaration is not None else path
        prefix = f"ns.{parent}." if parent else "ns."
        shown.append(f"{prefix}{signature.removeprefix('readonly ').removesuffix(';')}")
    suggestion = f" Nearest: {'; '.join(shown)}." if shown else ""
    column = count_characters(source, use.line, use.column)
    return Problem("unknown_api", f"ns.{use.path} does not exist.{suggestion}", use.line, column)
