"""Definitions: the game's TypeScript definition file, cut into entries that can be found.

An entry is one declaration with the comment before it: a function or property of an interface, or something
at the top. Takes text and returns values. All that is relied on is the file's regular layout; what does not
fit it becomes part of a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

_SCOPES = ("interface", "class", "namespace")
_MODIFIERS = ("abstract", "declare", "default", "export", "public", "readonly", "static")
_KEYWORDS = frozenset((*_SCOPES, *_MODIFIERS, "const", "enum", "function", "let", "type", "var"))
_PUNCTUATION = str.maketrans(dict.fromkeys("(<:?;={[", " "))


class Entry(Struct, frozen=True):
    """One declaration."""

    symbol: str
    line: int
    text: str

    @property
    def name(self) -> str:
        """The last part of the symbol."""
        return self.symbol.rpartition(".")[2]


class Definitions:
    """The entries of one definition file."""

    def __init__(self, text: str) -> None:
        self.entries = list(_entries(text))

    def find(self, query: str, limit: int) -> tuple[list[Entry], int]:
        """Return the best entries for a symbol or text, and how many there are in all."""
        wanted = query.strip().lower().removeprefix("ns.")
        ranked = [(rank, entry) for entry in self.entries if (rank := _rank(entry, wanted)) is not None]
        ranked.sort(key=lambda found: found[0])
        return [entry for _, entry in ranked[:limit]], len(ranked)

    def named(self, names: set[str]) -> list[Entry]:
        """Return the entries whose last part is one of these names."""
        return [entry for entry in self.entries if entry.name in names and "." in entry.symbol]


def _rank(entry: Entry, wanted: str) -> int | None:
    """Say how well an entry fits, lower is better; None where it does not."""
    symbol, name = entry.symbol.lower(), entry.name.lower()
    checks = (
        wanted in (name, symbol),
        symbol.endswith(f".{wanted}"),
        name.startswith(wanted),
        wanted in symbol,
        wanted in entry.text.lower(),
    )
    return next((rank for rank, holds in enumerate(checks) if holds), None)


def _entries(text: str) -> Iterator[Entry]:
    """Walk over the lines; an entry begins with its comment and ends where its braces are closed again."""
    lines = text.splitlines()
    owner, start, index = "", None, 0
    while index < len(lines):
        line = lines[index].strip()
        if line.startswith("/**"):
            start = index
            index = _end_of_comment(lines, index)
        elif not line:
            start = None
        elif line.startswith("}"):
            owner, start = "", None
        else:
            first = index if start is None else start
            is_open, index = _end_of_declaration(lines, index, is_top=not owner)
            symbol = _symbol(line, owner)
            if symbol:
                yield Entry(symbol, first + 1, _outdented(lines[first : index + 1]))
            if is_open:
                owner = symbol
            start = None
        index += 1


def _end_of_comment(lines: list[str], index: int) -> int:
    while index < len(lines) - 1 and "*/" not in lines[index]:
        index += 1
    return index


def _end_of_declaration(lines: list[str], index: int, *, is_top: bool) -> tuple[bool, int]:
    """Return whether what follows are members, and the last line of the declaration."""
    if is_top and lines[index].rstrip().endswith("{") and _has_members(lines[index]):
        return True, index
    depth = 0
    for last in range(index, len(lines)):
        line = lines[last]
        depth += sum(map(line.count, "({[")) - sum(map(line.count, ")}]"))
        if depth <= 0 and line.rstrip().endswith((";", "}", ",")):
            return False, last
    return False, len(lines) - 1


def _has_members(line: str) -> bool:
    return not set(_SCOPES).isdisjoint(line.split())


def _symbol(line: str, owner: str) -> str:
    words = [word for word in line.translate(_PUNCTUATION).split() if word not in _KEYWORDS]
    name = words[0].strip("'\",") if words else ""
    if not name or not (name[0].isalpha() or name[0] in "_$"):
        return ""
    return f"{owner}.{name}" if owner else name


def _outdented(lines: list[str]) -> str:
    from textwrap import dedent

    return dedent("\n".join(lines))
