"""Search: find declarations by symbol, by the words in their names, and by their comments.

An exact symbol is the whole answer. Otherwise each word of the query scores for the best place where it
occurs: the name, what players use the function for, the first sentence, the owner, the rest of the comment.
Rare words score more than common ones, and players' words match the API's by synonyms.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from difflib import get_close_matches
from functools import cached_property, lru_cache

from msgspec import Struct

from ..game import timestamps
from .definitions import ROOT, Declaration, Definitions
from .ram import Price, list_prices
from .signatures import Signatures
from .words import PURPOSES, STOP, SYNONYMS

_IN_NAME, _IN_PURPOSE, _IN_SUMMARY, _IN_OWNER, _IN_COMMENT = 10.0, 8.0, 6.0, 5.0, 0.5
_AS_SYNONYM = 0.75
_COVERAGE, _EXACTNESS = 1.5, 1.0
_AS_SPELLED = 1.08
_BASIC, _PART, _FORMULA, _OTHER = 1.4, 1.25, 0.9, 0.6
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*(?:\(\))?")


_VERBS = frozenset({"get", "set", "is", "has"})
_MAX_WORDS = 24
_MAX_SYMBOLS = 20
"""Words and symbols of a query that are looked up; each costs a pass over the declarations."""
_MAX_REST = 15
_MAX_SPELLING = 60
"""Characters of a name that others are compared with: comparing spellings takes quadratic time."""


class SearchResult(Struct, frozen=True):
    """The result of a search."""

    declarations: list[Declaration]
    total: int
    near: list[str] = []
    """Similar names, if nothing matched."""
    rest: list[Declaration] = []
    """The next best ones."""


class _Indexed(Struct, frozen=True):
    declaration: Declaration
    name: frozenset[str]
    purpose: frozenset[str]
    owner: frozenset[str]
    summary: frozenset[str]
    comment: frozenset[str]
    spelled: frozenset[str]
    """The words of the name, not stemmed."""
    rate: float


class DefinitionSearch:
    """Searches one definition file."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.signatures = Signatures(definitions)
        self._paths = {interface: path for path, interface in definitions.namespaces.items()}
        self._indexed: list[_Indexed] = []
        for declaration in definitions.declarations:
            owner = declaration.owner
            path = self._paths.get(owner)
            # The likelihood that it is meant: most scripts call plain functions. Formulas need a program that
            # few players have at first.
            rate = _OTHER
            if declaration.is_function and path is not None:
                rate = _FORMULA if path.startswith("formulas") else _BASIC if owner == ROOT else _PART
            self._indexed.append(
                _Indexed(
                    declaration,
                    frozenset(_split(declaration.name)),
                    frozenset(_stem(word) for word in PURPOSES.get(declaration.name, ()))
                    if declaration.is_function and path is not None
                    else frozenset(),
                    frozenset(_split(f"{owner} {(path or '').replace('.', ' ')}")) - {"ns"},
                    frozenset(_split(declaration.summary)),
                    frozenset(_split(declaration.comment)),
                    frozenset(word.lower() for word in _WORDS.findall(declaration.name)),
                    rate,
                )
            )
        self._by_name: dict[str, list[Declaration]] = {}
        """Declarations by symbol, by bare name and by path, in lower case."""
        for declaration in definitions.declarations:
            path = self._paths.get(declaration.owner)
            names = {declaration.symbol, declaration.name}
            names |= {f"{path}.{declaration.name}".lstrip(".")} if path is not None else set()
            for name in {name.lower() for name in names}:
                self._by_name.setdefault(name, []).append(declaration)
        counted: Counter[str] = Counter()
        for entry in self._indexed:
            counted.update(entry.name | entry.purpose | entry.owner | entry.summary)
        total = len(self._indexed) or 1
        # Inverse document frequency: a word that many declarations have says little about any of them.
        self._weights = {word: math.log(1 + total / count) for word, count in counted.items()}
        self._rare = math.log(1 + total)

    def find(self, query: str, limit: int) -> SearchResult:
        """Return the best declarations for a symbol, a list of symbols or a few words."""
        listed = [part.strip() for part in re.split(r"[,;\n]", query) if part.strip()][:_MAX_SYMBOLS]
        named = [self._find_exact(part) for part in listed]
        # The best match of each symbol first, then further ones of the same name.
        exact = [match for matches in named for match in matches[:1]]
        exact += [match for matches in named for match in matches[1:]]
        # A symbol is no sentence: ranking its words would only add noise.
        is_symbol = len(listed) > 1 or "." in query or query.strip() in {one.name for one in exact[:1]}
        ranked = [] if exact and is_symbol else self._rank(query)
        merged = list({match.symbol: match for match in (*exact, *ranked)}.values())
        # What was named is shown, each once; further declarations of the same name are among the rest.
        firsts = len({matches[0].symbol for matches in named if matches})
        shown = firsts if exact and is_symbol else limit
        if merged:
            return SearchResult(merged[:shown], len(merged), rest=merged[shown : shown + _MAX_REST])
        return SearchResult([], 0, self.suggest(query.strip().removesuffix("()").rpartition(".")[2]))

    def name_of(self, declaration: Declaration) -> str:
        """Return a declaration's name as a script writes it: `ns.stock.buyStock`, not `TIX.buyStock`."""
        path = self._paths.get(declaration.owner)
        return declaration.symbol if path is None else f"ns.{f'{path}.{declaration.name}'.lstrip('.')}"

    def suggest(self, name: str, interface: str | None = None, count: int = 5) -> list[str]:
        """Return names similar to one that does not exist: close in spelling, or with common words."""
        members = (
            self.definitions.members.get(interface, {})
            if interface is not None
            else {declaration.name: declaration for declaration in self.definitions.declarations}
        )
        lower = {member.lower(): member for member in members}
        wanted = name.lower()[:_MAX_SPELLING]
        alike = [lower[match] for match in get_close_matches(wanted, lower, count, 0.6)]
        words = frozenset(_split(name)[:_MAX_WORDS])
        # By the share of common words (Jaccard): a longer name with the same words fits less well.
        shared = sorted(
            (member for member in members if words & frozenset(_split(member))),
            key=lambda member: (
                -len(words & frozenset(_split(member))) / len(words | frozenset(_split(member)))
            ),
        )
        return list(dict.fromkeys([*alike[:3], *shared, *alike]))[:count]

    def _find_exact(self, part: str) -> list[Declaration]:
        """Return the declarations that a text names: by path, by symbol, or by bare name."""
        if not _SYMBOL.fullmatch(part):
            return []
        symbol = part.removesuffix("()")
        bare = re.sub(r"^ns\.", "", symbol, flags=re.IGNORECASE)
        lower = bare.lower()
        exact = [
            match
            for match in (
                self.definitions.find_path(bare),
                self.definitions.by_symbol.get(symbol),
                self.definitions.by_symbol.get(bare),
            )
            if match is not None
        ]
        matching = list(self._by_name.get(lower, ()))
        if symbol.lower() != lower:
            matching += self._by_name.get(symbol.lower(), ())
        # Of equal names: functions of ns itself, then of its namespaces, then types.
        matching.sort(
            key=lambda each: (each.owner != ROOT, each.owner not in self._paths, not each.is_function)
        )
        return [*exact, *matching]

    def _rank(self, query: str) -> list[Declaration]:
        every = list(dict.fromkeys(_split(query)))
        words = ([word for word in every if word not in STOP] or every)[:_MAX_WORDS]
        if not words:
            return []
        spelled = frozenset(word.lower() for word in _WORDS.findall(query))
        scored = []
        for entry in self._indexed:
            score, matched, in_name = 0.0, 0, 0.0
            for word in words:
                weight = _weigh(entry, word)
                if weight:
                    matched += 1
                    score += weight * self._weights.get(word, self._rare)
                    in_name += weight >= _IN_NAME * _AS_SYNONYM
            if not score:
                continue
            coverage = matched / len(words)
            # Of two names with all the words, the one with fewer other words fits better.
            meaning = len(entry.name - _VERBS) or 1
            exactness = min(in_name, meaning) / meaning
            alike = _AS_SPELLED ** len(spelled & entry.spelled)
            # Coverage to a power: a declaration with all words beats one that has a single rare word.
            score *= coverage**_COVERAGE * (1 + _EXACTNESS * exactness) * alike * entry.rate
            scored.append((score, entry.declaration))
        scored.sort(key=lambda pair: (-pair[0], pair[1].line))
        return [declaration for _, declaration in scored]


class Index:
    """A definition file, ready to be searched."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.away_since: float | None = None
        """The time at which the file was fetched, if the game is away now."""
        self.definitions = Definitions(text)
        self.search = DefinitionSearch(self.definitions)

    @cached_property
    def prices(self) -> dict[str, Price]:
        """What each name adds to a script's RAM."""
        return list_prices(self.definitions)

    @property
    def note(self) -> str:
        """A note that these definitions are from an earlier connection; empty if they are current."""
        if self.away_since is None:
            return ""
        return f"The game is away; these are the definitions of {timestamps.format_utc(self.away_since)}."


def _weigh(entry: _Indexed, word: str) -> float:
    """Return the weight of a word in a declaration: that of the best place where it occurs."""
    if word in entry.name:
        return _IN_NAME
    places = (
        (_IN_NAME, entry.name),
        (_IN_PURPOSE, entry.purpose),
        (_IN_SUMMARY, entry.summary),
        (_IN_OWNER, entry.owner),
        (_IN_COMMENT, entry.comment),
    )
    best = 0.0
    others = _expand(word)
    for weight, words in places:
        if weight <= best:
            break
        if word in words:
            best = max(best, weight)
        elif not others.isdisjoint(words):
            best = max(best, weight * _AS_SYNONYM)
    return best


@lru_cache(maxsize=4096)
def _expand(word: str) -> frozenset[str]:
    """Return the API's words that a player's word is a synonym of."""
    return frozenset(_stem(api) for api, words in SYNONYMS.items() if word in map(_stem, words))


def _split(text: str) -> list[str]:
    """Return the stemmed words of a text; camel-case names are split."""
    return [_stem(word.lower()) for word in _WORDS.findall(text)]


@lru_cache(maxsize=16384)
def _stem(word: str) -> str:
    """Cut off endings, so that `servers` equals `server` and `purchased` equals `purchase`."""
    for ending, replacement in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", "e"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):  # noqa: PLR2004 - a stem of two letters is none
            return (word.removesuffix(ending) + replacement).removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word  # noqa: PLR2004 - the same
