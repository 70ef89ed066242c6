"""Checking: the problems of a script that the game accepts silently and that show only when it runs.

Works on the syntax tree alone. Says nothing where it is not certain: a false alarm costs more than a missed
problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from .guards import Guards
from .scripts import ApiUse, Script, TooMuchWork

if TYPE_CHECKING:
    from .definitions import Definitions
    from .search import DefinitionSearch

MAX_CHARACTERS = 300_000
"""Longer scripts come from bundlers, which check them."""
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

When = Literal["start", "line", "maybe"]
"""A script with a problem fails when it starts, fails when it reaches the line, or may do something else."""


class Problem(Struct, frozen=True):
    """Something wrong in a script."""

    code: str
    message: str
    line: int
    column: int
    when: When = "line"


def check_script(
    source: str, filename: str, definitions: Definitions, search: DefinitionSearch
) -> list[Problem]:
    """Return the syntax error of a script, or its other problems in order."""
    if len(source) > MAX_CHARACTERS:
        return [_not_checked(f"it is longer than {MAX_CHARACTERS:,} characters")]
    try:
        script = Script(source, filename, definitions)
        broken = script.tree.problem
        if broken is not None:
            place = script.tree.place_of(broken.start)
            return [Problem("syntax_error", f"Syntax error: {broken.message}.", *place, "start")]
        if filename.endswith(".script") or not definitions.namespaces or not definitions.members.get("NS"):
            # A `.script` file is NS1, where functions are globals; without definitions nothing is certain.
            return []
        problems = _find_unknown(script, definitions, search)
    except TooMuchWork:
        return [_not_checked("following its values would take too long")]
    return sorted(problems, key=lambda problem: (problem.line, problem.column))[:_MAX_PROBLEMS]


def _not_checked(why: str) -> Problem:
    return Problem("not_checked", f"The script was not checked: {why}.", 1, 1, "maybe")


def _find_unknown(script: Script, definitions: Definitions, search: DefinitionSearch) -> list[Problem]:
    """Find members of the API that do not exist; a name that is used often is reported once."""
    guards = Guards(script)
    unknown: dict[str, ApiUse] = {}
    for use in script.find_uses():
        if use.name in definitions.members[definitions.namespaces[use.parent]]:
            continue
        if (
            use.name in _OF_EVERY_OBJECT | _UNDOCUMENTED
            or use.has_default
            or guards.covers(use.node, use.name)
        ):
            continue
        unknown.setdefault(use.path, use)
    return [
        _describe_unknown(use, script, definitions, search) for use in list(unknown.values())[:_MAX_PROBLEMS]
    ]


def _describe_unknown(
    use: ApiUse, script: Script, definitions: Definitions, search: DefinitionSearch
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
    place = script.tree.place_of(use.start)
    return Problem("unknown_api", f"ns.{use.path} does not exist.{suggestion}", *place)
