"""Definitions: a file of TypeScript definitions like the game's, with texts of our own.

Made from `netscript_api.txt`, a listing written by hand from the documented API: for each member a line with
its signature, its RAM cost as documented (`-`: none; `s`: times 16/4/1), its actual cost where that differs,
and a sentence. It is not complete, and signatures or costs may differ from the game's. Invented interfaces,
marked as filling, bring the file to the length of the game's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

from msgspec import Struct

from bridgehead.runtime.lines import split_lines

LENGTH = 335_000
_HEAD = "/** Definitions of a simulated game: a listing by hand of the documented API, and filling. */\n\n"
_THINGS = ("Antenna", "Beacon", "Cipher", "Daemon", "Engine", "Firewall", "Gateway", "Kernel", "Vault")
_SIDES = ("Alert", "Budget", "Cursor", "Draft", "Event", "Filter", "Handle")
_FIELDS = ("amount", "capacity", "duration", "interval", "limit", "offset", "priority", "reserve")
_FRESH_FACTOR = 16
"""Without Source-File 4, functions of ns.singularity cost 16 times as much."""


class Member(Struct, frozen=True):
    """A member of an interface."""

    signature: str
    stated: str = "-"
    real: str = ""
    about: str = ""

    @property
    def name(self) -> str:
        """Its name alone."""
        return self.signature.removeprefix("readonly ").split("(")[0].split(":")[0].rstrip("?")

    @property
    def is_function(self) -> bool:
        """Whether it can be called."""
        return "(" in self.signature.split(":")[0]

    @property
    def cost(self) -> float:
        """GB that it adds to a script in a fresh game."""
        text = self.real or self.stated
        if text == "-":
            return 0.0
        return float(text.rstrip("s")) * (_FRESH_FACTOR if text.endswith("s") else 1)


@cache
def load_api() -> tuple[tuple[str, tuple[Member, ...]], ...]:
    """Return headings with their members: `# ` begins an interface, `= ` a declaration without members."""
    sections: list[tuple[str, list[Member]]] = []
    for line in split_lines(Path(__file__).with_name("netscript_api.txt").read_text(encoding="utf-8")):
        if line.startswith(("# ", "= ")):
            sections.append((line, []))
        else:
            sections[-1][1].append(Member(*line.split("\t")))
    return tuple((heading, tuple(members)) for heading, members in sections)


@cache
def list_costs() -> dict[str, float]:
    """Return the cost of each name; like the game, prefer a member of NS to one of the same name below it."""
    costs: dict[str, float] = {}
    ordered = sorted(load_api(), key=lambda section: section[0] != "# interface NS")
    for heading, members in ordered:
        if heading.startswith("# "):
            for member in members:
                if member.is_function:
                    costs.setdefault(member.name, member.cost)
    return costs


@cache
def definitions() -> str:
    """Return the definitions file; every simulated game has the same one."""
    parts = [_HEAD]
    for heading, members in load_api():
        if heading.startswith("= "):
            parts.append(f"/** @public */\n{heading[2:]}\n\n")
            continue
        body = ""
        for member in members:
            if member.about:
                cost = member.stated
                if cost != "-":
                    cost = f"{cost[:-1]} GB * 16/4/1" if cost.endswith("s") else f"{cost} GB"
                    cost = f"   * @remarks\n   * RAM cost: {cost}\n   *\n"
                body += f"  /**\n   * {member.about}\n{cost.removeprefix('-')}   */\n"
            body += f"  {member.signature}\n\n"
        parts.append(f"/** @public */\nexport {heading[2:]} {{\n{body.removesuffix(chr(10))}}}\n\n")
    missing = LENGTH - sum(map(len, parts))
    for filling in _make_filling():
        if missing <= 0:
            break
        parts.append(filling)
        missing -= len(filling)
    return "".join(parts)


def _make_filling() -> Iterator[str]:
    """Yield invented interfaces without end."""
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
