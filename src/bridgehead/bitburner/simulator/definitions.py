"""Definitions: a file of TypeScript definitions as long as the game's, with texts of our own.

What scripts use most is described with real signatures, so that a search in the file makes sense. The rest is
filling, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count

from .ram import COSTS
from .signatures import FUNCTIONS, TYPES

LENGTH = 335_000
_HEAD = (
    "/** Definitions of a simulated game: its signatures are the game's, texts and filling are not. */\n\n"
)
_THINGS = (
    "Antenna",
    "Beacon",
    "Cipher",
    "Daemon",
    "Engine",
    "Firewall",
    "Gateway",
    "Kernel",
    "Ledger",
    "Vault",
)
_SIDES = ("Alert", "Budget", "Cursor", "Draft", "Event", "Filter", "Handle")
_FIELDS = ("amount", "capacity", "duration", "interval", "limit", "offset", "priority", "reserve")
_SCRIPT = "NS"


@cache
def definitions() -> str:
    """Return the file, which is the same in every game."""
    parts = [_HEAD, *_types(), *_interfaces()]
    left = LENGTH - sum(map(len, parts))
    for filling in _filling():
        if left <= 0:
            break
        parts.append(filling)
        left -= len(filling)
    return "".join(parts)


def _types() -> Iterator[str]:
    for line in TYPES.strip().splitlines():
        yield f"/** @public */\nexport {_unfolded(line)}\n\n"


def _unfolded(line: str) -> str:
    """Give each field of an interface its own line."""
    if not line.startswith("interface"):
        return line
    head, body = line.split("{", 1)
    fields = body.strip().removesuffix("}").strip().replace("; ", ";\n  ")
    return f"{head}{{\n  {fields}\n}}"


def _interfaces() -> Iterator[str]:
    for name, lines in FUNCTIONS.items():
        told = iter(lines.strip().splitlines())
        functions = "\n".join(_function(about, next(told).strip()) for about in told)
        parts = _parts() if name == _SCRIPT else ""
        yield f"/** @public */\nexport interface {name} {{\n{parts}{functions}}}\n\n"


def _parts() -> str:
    """Name the interfaces that a script finds inside of its own."""
    others = (name for name in FUNCTIONS if name != _SCRIPT)
    return "".join(f"  readonly {name[0].lower()}{name[1:]}: {name};\n" for name in others)


def _function(about: str, signature: str) -> str:
    cost = COSTS.get(signature.partition("(")[0], 0)
    return f"  /**\n   * {about}\n   *\n   * @remarks\n   * RAM cost: {cost:g} GB\n   */\n  {signature}\n"


def _filling() -> Iterator[str]:
    """Describe things that no game has, without end."""
    for number in count(1):
        thing, side = _THINGS[number % len(_THINGS)], _SIDES[number % len(_SIDES)]
        fields = "".join(
            f"  /** The {field} of this {side.lower()}, as counted by the {thing.lower()}. */\n"
            f"  {field}{thing}: number;\n"
            for field in _FIELDS
        )
        yield (
            f"/**\n * {side} {number} of the {thing.lower()}: filling, up to the length of the game's file.\n"
            f" * @public\n */\nexport interface {thing}{side}{number} {{\n{fields}}}\n\n"
        )
