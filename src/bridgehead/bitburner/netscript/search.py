"""Search: finds declarations by symbol, by the words in their names, and by their comments.

An exact symbol always comes first. Otherwise each word of the query counts for the best place it is found in:
the name, what it belongs to, its first sentence, the rest of its comment. Rare words count more than common
ones, and players' words stand for the API's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from difflib import get_close_matches
from functools import lru_cache

from msgspec import Struct

from ..game import timestamps
from .definitions import ROOT, Declaration, Definitions
from .words import STOP, SYNONYMS

_IN_NAME, _IN_OWNER, _IN_SUMMARY, _IN_COMMENT = 10.0, 5.0, 4.0, 1.0
_AS_SYNONYM = 0.75
_AS_SPELLED = 1.08
_BASIC, _PART, _FORMULA, _OTHER = 1.4, 1.25, 0.9, 0.75
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*(?:\(\))?")


_VERBS = frozenset({"get", "set", "is", "has"})


class Found(Struct, frozen=True):
    """The result of a search."""

    declarations: list[Declaration]
    total: int
    near: list[str] = []
    """Names like the query if nothing matched."""


class _Indexed(Struct, frozen=True):
    declaration: Declaration
    name: frozenset[str]
    owner: frozenset[str]
    summary: frozenset[str]
    comment: frozenset[str]
    spelled: frozenset[str]
    """The words of the name, not stemmed."""
    rate: float


class DefinitionSearch:
    """Searches one definition file."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._paths = {interface: path for path, interface in definitions.namespaces.items()}
        self._indexed: list[_Indexed] = []
        for one in definitions.declarations:
            path = self._paths.get(one.owner)
            # How likely it is what is wanted: most scripts call plain functions. Formulas need a program
            # that few have at first.
            rate = _OTHER
            if one.is_function and path is not None:
                rate = _FORMULA if path.startswith("formulas") else _BASIC if one.owner == ROOT else _PART
            self._indexed.append(
                _Indexed(
                    one,
                    frozenset(_split(one.name)),
                    frozenset(_split(f"{one.owner} {(path or '').replace('.', ' ')}")) - {"ns"},
                    frozenset(_split(one.summary)),
                    frozenset(_split(one.comment)),
                    frozenset(word.lower() for word in _WORDS.findall(one.name)),
                    rate,
                )
            )
        counted: Counter[str] = Counter()
        for entry in self._indexed:
            counted.update(entry.name | entry.owner | entry.summary)
        total = len(self._indexed) or 1
        self._weights = {word: math.log(1 + total / count) for word, count in counted.items()}
        self._rare = math.log(1 + total)

    def find(self, query: str, limit: int) -> Found:
        """Return the best declarations for a symbol, a list of symbols or a few words."""
        listed = [part.strip() for part in re.split(r"[,;\n]", query) if part.strip()]
        named = [self._find_exact(part) for part in listed]
        # The best match of each symbol first, then further ones of the same name.
        exact = [one for found in named for one in found[:1]] + [one for found in named for one in found[1:]]
        ranked = [] if len(listed) > 1 and exact else self._rank(query)
        merged = list({one.symbol: one for one in (*exact, *ranked)}.values())
        if merged:
            return Found(merged[:limit], len(merged))
        return Found([], 0, self.suggest(query.strip().removesuffix("()").rpartition(".")[2]))

    def suggest(self, name: str, interface: str | None = None, count: int = 5) -> list[str]:
        """Return names like one that does not exist: spelt alike, or of the same words."""
        members = (
            self._definitions.members.get(interface, {})
            if interface is not None
            else {one.name: one for one in self._definitions.declarations}
        )
        lower = {one.lower(): one for one in members}
        alike = [lower[one] for one in get_close_matches(name.lower(), lower, count, 0.6)]
        words = frozenset(_split(name))
        shared = sorted(
            (one for one in members if words & frozenset(_split(one))),
            key=lambda one: -len(words & frozenset(_split(one))) / len(words | frozenset(_split(one))),
        )
        return list(dict.fromkeys([*alike[:3], *shared, *alike]))[:count]

    def _find_exact(self, part: str) -> list[Declaration]:
        """Return the declarations that a text names: by path as scripts write it, by symbol, or by name."""
        if not _SYMBOL.fullmatch(part):
            return []
        symbol = part.removesuffix("()")
        bare = re.sub(r"^ns\.", "", symbol, flags=re.IGNORECASE)
        lower = bare.lower()
        found = [
            one
            for one in (
                self._definitions.find_path(bare),
                self._definitions.by_symbol.get(symbol),
                self._definitions.by_symbol.get(bare),
            )
            if one is not None
        ]
        matching = [
            one
            for one in self._definitions.declarations
            if one.symbol.lower() in (lower, symbol.lower())
            or one.name.lower() == lower
            or one.symbol.lower().endswith(f".{lower}")
            or f"{self._paths.get(one.owner, ' ')}.{one.name}".lstrip(".").lower() == lower
        ]
        matching.sort(key=lambda one: (one.owner != ROOT, one.owner not in self._paths, not one.is_function))
        return [*found, *matching]

    def _rank(self, query: str) -> list[Declaration]:
        words = [word for word in dict.fromkeys(_split(query)) if word not in STOP] or _split(query)
        if not words:
            return []
        spelled = frozenset(word.lower() for word in _WORDS.findall(query))
        scored = []
        for one in self._indexed:
            score, matched, in_name = 0.0, 0, 0.0
            for word in words:
                weight = _weigh(one, word)
                if weight:
                    matched += 1
                    score += weight * self._weights.get(word, self._rare)
                    in_name += weight >= _IN_NAME * _AS_SYNONYM
            if not score:
                continue
            coverage = matched / len(words)
            # Of two names with all the words, the one with fewer others fits better.
            meaning = len(one.name - _VERBS) or 1
            exactness = min(in_name, meaning) / meaning
            alike = _AS_SPELLED ** len(spelled & one.spelled)
            score *= coverage * coverage * (1 + 0.5 * exactness) * alike * one.rate
            scored.append((score, one.declaration))
        scored.sort(key=lambda pair: (-pair[0], pair[1].line))
        return [declaration for _, declaration in scored]


class Index:
    """A definition file, ready to be searched."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.away_since: float | None = None
        """When the file was fetched, if the game is away now."""
        self.definitions = Definitions(text)
        self.search = DefinitionSearch(self.definitions)

    @property
    def note(self) -> str:
        """Say that these are the definitions of an earlier game; empty if they are current."""
        if self.away_since is None:
            return ""
        return f"The game is away; these are the definitions of {timestamps.format_utc(self.away_since)}."


def _weigh(one: _Indexed, word: str) -> float:
    """Return the weight of a word in a declaration: that of the best place it occurs in."""
    if word in one.name:
        return _IN_NAME
    places = (
        (_IN_NAME, one.name),
        (_IN_OWNER, one.owner),
        (_IN_SUMMARY, one.summary),
        (_IN_COMMENT, one.comment),
    )
    best = 0.0
    others = _expand(word)
    for weight, found in places:
        if weight <= best:
            break
        if word in found:
            best = max(best, weight)
        elif not others.isdisjoint(found):
            best = max(best, weight * _AS_SYNONYM)
    return best


@lru_cache(maxsize=4096)
def _expand(word: str) -> frozenset[str]:
    """Return the API's words that a player's word stands for."""
    return frozenset(_stem(api) for api, said in SYNONYMS.items() if word in {_stem(one) for one in said})


def _split(text: str) -> list[str]:
    """Return the words of a text, names taken apart by their case."""
    return [_stem(word.lower()) for word in _WORDS.findall(text)]


@lru_cache(maxsize=16384)
def _stem(word: str) -> str:
    """Cut endings off, so that `servers`, `server` and `purchased`, `purchase` are one."""
    for ending, replacement in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", "e"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):  # noqa: PLR2004 - a stem of two letters is none
            return (word.removesuffix(ending) + replacement).removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word  # noqa: PLR2004 - the same
