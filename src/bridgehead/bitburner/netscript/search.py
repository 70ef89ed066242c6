"""Search: find declarations by symbol, by the words in their names, and by their comments.

An exact symbol is the whole answer. Otherwise each word of the query scores for the best place where it
occurs: the name, what players use the function for, the first sentence, the owner, what it takes and returns,
the rest of the comment. Rare words score more than common ones, and players' words match the API's by
synonyms. Words are looked up in an inverted index, so a search reads only the declarations that have them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Literal

from msgspec import Struct

from .definitions import ROOT, Declaration, Definitions
from .ram import Price, list_prices
from .signatures import Signatures
from .words import PURPOSES, STOP, SYNONYMS

# Found by random search over the questions of bench/bitburner/questions.py that are not held out.
_IN_NAME, _IN_PURPOSE, _IN_OWNER, _IN_SUMMARY, _IN_TYPES, _IN_COMMENT = 10.0, 8.0, 7.0, 6.0, 2.5, 0.5
_STRONG = 5.5
"""From this weight on, a word describes the subject of a declaration."""
_AS_SYNONYM = 0.55
_COVERAGE, _EXACTNESS = 2.0, 1.0
_AS_SPELLED = 1.08
_BASIC, _PART, _FORMULA, _OTHER = 1.7, 1.25, 1.0, 0.5
_INTENT = 1.12
_VARIANT = 0.9
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_HOW_TO = re.compile(r"(?:how (?:do|can|should) (?:i|you|we)|how to|i want to|can i) ", re.IGNORECASE)
_CHECK = re.compile(r"(?:whether|if|check|is|are|do|does|did|has|have|can|may|am)\b", re.IGNORECASE)
_CHECKS, _READS = frozenset({"is", "has", "can", "in"}), frozenset({"get", "num", "max"})
"""The first words of names of functions that check something or read a value."""
_SIGNS = {"%": " percent ", "$": " money "}
_TYPES = re.compile(r"\b_?[A-Z]\w+")
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*(?:\(\))?")
_VERBS = frozenset({"get", "set", "is", "has"})
_MAX_WORDS = 24
_MAX_SYMBOLS = 20
"""Words and symbols of a query that are looked up."""
_MAX_REST = 15
_MAX_INNER = 12
"""Fields of an object inside a result that are indexed with it, such as a player's skills."""
_MIN_STEM = 3
_VOWELS = frozenset("aeiouy")
_ENDINGS = (
    *(("sses", "ss"), ("ies", "y"), ("s", ""), ("ment", ""), ("able", ""), ("ly", ""), ("ing", "")),
    *(("ed", ""), ("ation", "at"), ("ion", ""), ("e", ""), ("itat", "it"), ("entat", "ent")),
)
"""Endings in the order in which they are cut off, and what takes their place."""
_MAX_NAME_WORDS = 6
"""Words of a name that is compared with the names of its parts, of which there are at most 62."""
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


_Intent = Literal["check", "read", "do"]
"""The intent of a function or a query: check something, read a value, or do something."""


class _Indexed(Struct, frozen=True):
    declaration: Declaration
    name: frozenset[str]
    """The words of the name that say what it is about: without `get` and the like."""
    spelled: frozenset[str]
    """The words of the name, unstemmed."""
    rate: float
    """Prior weight: how likely it is meant."""
    intent: _Intent


class DefinitionSearch:
    """Searches one definition file."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.signatures = Signatures(definitions)
        self._paths: dict[str, str] = {}
        """The path of each interface of the API."""
        for path, interface in definitions.namespaces.items():
            self._paths[interface] = path
            # What an interface inherits is called by its path, too: ns.corporation.hireEmployee of OfficeAPI.
            for member in definitions.members.get(interface, {}).values():
                self._paths.setdefault(member.owner, path)
        self._indexed: list[_Indexed] = []
        self._places: dict[str, dict[int, float]] = {}
        """For each word, the declarations that have it, with the weight of the best place."""
        self._verbs: set[str] = set()
        """The words with which the names of functions that do something begin."""
        for declaration in definitions.declarations:
            self._add(declaration)
        self._returning: dict[str, list[Declaration]] = {}
        """For each type, the functions that return it, or a list of it."""
        # The most used first: of two, the plain function.
        for entry in sorted(self._indexed, key=lambda entry: -entry.rate):
            declaration = entry.declaration
            if declaration.is_function and declaration.owner in self._paths:
                for type_name in _TYPES.findall(declaration.signature.rpartition("):")[2]):
                    self._returning.setdefault(type_name, []).append(declaration)
        self._variants = self._find_variants()
        self._by_name: dict[str, list[Declaration]] = {}
        """Declarations by symbol, by bare name and by path, in lower case."""
        for declaration in definitions.declarations:
            names = {declaration.symbol, declaration.name, self.name_of(declaration).removeprefix("ns.")}
            for name in {name.lower() for name in names}:
                self._by_name.setdefault(name, []).append(declaration)

    def find(self, query: str, limit: int) -> SearchResult:
        """Return the best declarations for a symbol, a list of symbols or a few words."""
        listed = [part.strip() for part in re.split(r"[,;\n]", query) if part.strip()][:_MAX_SYMBOLS]
        named = [self._find_exact(part) for part in listed]
        # The best match of each symbol first, then further ones of the same name.
        exact = [match for matches in named for match in matches[:1]]
        returning = self._returning.get(exact[0].symbol, [])[: limit - 1] if len(exact) == 1 else []
        exact += returning
        exact += [match for matches in named for match in matches[1:]]
        # A symbol is no sentence: ranking its words would only add noise.
        is_symbol = (
            len(listed) > 1
            or "." in query
            or query.strip() in {declaration.name for declaration in exact[:1]}
        )
        ranked = [] if exact and is_symbol else self._rank(query)
        merged = list({match.symbol: match for match in (*exact, *ranked)}.values())
        # Show each named declaration once, and for a type the functions that return it; further declarations
        # of the same name go to the rest.
        firsts = len({matches[0].symbol for matches in named if matches})
        shown = firsts + len(returning) if exact and is_symbol else limit
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

    def _add(self, declaration: Declaration) -> None:
        """Index the words of a declaration."""
        path = self._paths.get(declaration.owner)
        is_callable = declaration.is_function and path is not None
        # Most scripts call plain functions. Formulas need a program that few players have at first.
        rate = _OTHER
        if is_callable and path is not None:
            rate = _FORMULA if path.startswith("formulas") else _BASIC if declaration.owner == ROOT else _PART
        name = _split(declaration.name)
        places = [
            (_IN_NAME, name),
            (_IN_SUMMARY, _split(declaration.summary.partition(". ")[0])),
            (_IN_OWNER, _split(f"{declaration.owner} {(path or '').replace('.', ' ')}")),
            (_IN_COMMENT, _split(declaration.comment)),
        ]
        if is_callable:
            places.append((_IN_PURPOSE, [_stem(word) for word in PURPOSES.get(declaration.name, ())]))
            places.append((_IN_TYPES, list(self._list_type_words(declaration))))
        number = len(self._indexed)
        for weight, words in places:
            for word in words:
                weights = self._places.setdefault(word, {})
                weights[number] = max(weight, weights.get(number, 0.0))
        spelled = frozenset(word.lower() for word in _WORDS.findall(declaration.name))
        first = next(iter(_WORDS.findall(declaration.name)), "")
        intent: _Intent = "check" if first in _CHECKS else "read" if first in _READS else "do"
        if is_callable and intent == "do":
            self._verbs.add(_stem(first.lower()))
        self._indexed.append(_Indexed(declaration, frozenset(name) - _VERBS, spelled, rate, intent))

    def _find_variants(self) -> set[int]:
        """Return the functions whose names only add words to another's, as `canRecruitMember` does.

        Of the two, the shorter one is meant more often.
        """
        functions = [
            (number, entry.declaration.owner, entry.name)
            for number, entry in enumerate(self._indexed)
            if entry.declaration.is_function and len(entry.name) <= _MAX_NAME_WORDS
        ]
        known = {(owner, name) for _, owner, name in functions}
        return {
            number
            for number, owner, name in functions
            if any(
                (owner, frozenset(some)) in known
                for size in range(1, len(name))
                for some in combinations(name, size)
            )
        }

    def _list_type_words(self, declaration: Declaration) -> Iterator[str]:
        """Yield the words of a function's types: `shoplift` is a crime, and `city` a field of the player."""
        by_symbol, members = self.definitions.by_symbol, self.definitions.members
        taken, _, returned = declaration.signature.rpartition(":")
        for type_name in _TYPES.findall(taken):
            # Of a parameter, the values of its enum; 3.0 writes _ValueOf<CrimeEnumType>.
            alias = by_symbol.get(type_name)
            signature = "" if alias is None else alias.signature
            enums = [type_name] if "enum " in signature.partition("{")[0] else []
            for enum in [*enums, *(name for name in _TYPES.findall(signature) if name.endswith("EnumType"))]:
                for value in members.get(enum, ()):
                    yield from _split(value)
        for type_name in _TYPES.findall(returned):
            for name, member in members.get(type_name, {}).items():
                yield from _split(name)
                inner = members.get(member.type_name, {})
                for field in inner if len(inner) <= _MAX_INNER else ():
                    yield from _split(field)

    def _read_intent(self, query: str) -> _Intent:
        goal = _HOW_TO.sub("", query)
        verb = next(iter(_split(goal[:_MAX_SPELLING])), "")
        if _CHECK.match(goal):
            return "check"
        return "do" if goal != query or not self._verbs.isdisjoint({verb, *_expand(verb)}) else "read"

    def _rank(self, query: str) -> list[Declaration]:
        for sign, word in _SIGNS.items():
            query = query.replace(sign, word)
        every = [word for word in dict.fromkeys(_split(query)) if not word.isdigit()]
        words = ([word for word in every if word not in _STOP] or every)[:_MAX_WORDS]
        spelled = frozenset(word.lower() for word in _WORDS.findall(query))
        intent = self._read_intent(query.strip())
        scores: dict[int, float] = {}
        covered: dict[int, int] = {}
        strong: dict[int, int] = {}
        is_known = False
        for word in words:
            best = dict(self._places.get(word, ()))
            for other in _expand(word):
                for number, weight in self._places.get(other, {}).items():
                    best[number] = max(best.get(number, 0.0), weight * _AS_SYNONYM)
            # Inverse document frequency: a word that many declarations have says little about any of them.
            # Occurrences in comments alone do not count.
            frequency = sum(weight > _IN_COMMENT for weight in best.values()) or 1
            is_known |= any(weight > _IN_COMMENT for weight in best.values())
            rarity = math.log(1 + len(self._indexed) / frequency)
            for number, weight in best.items():
                scores[number] = scores.get(number, 0.0) + weight * rarity
                covered[number] = covered.get(number, 0) + 1
                strong[number] = strong.get(number, 0) + (weight >= _STRONG)
        # Words of comments alone, such as an example's `foo`, are about none of the declarations.
        ranked = []
        for number, score in scores.items() if is_known else ():
            entry = self._indexed[number]
            # Coverage to a power: a declaration with all words beats one that has a single rare word.
            coverage = (covered[number] / len(words)) ** _COVERAGE
            # Of two names with all the words, the one with fewer other words fits better.
            meaning = len(entry.name) or 1
            exactness = 1 + _EXACTNESS * min(strong[number], meaning) / meaning
            alike = _AS_SPELLED ** len(spelled & entry.spelled)
            fit = _INTENT if entry.intent == intent else 1.0
            rate = entry.rate * _VARIANT if number in self._variants else entry.rate
            ranked.append((score * coverage * exactness * alike * fit * rate, entry.declaration))
        ranked.sort(key=lambda pair: (-pair[0], pair[1].line))
        return [declaration for _, declaration in ranked]


class Index:
    """A definition file, ready to be searched."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.note = ""
        """Says that the definitions are from an earlier connection; empty if they are current."""
        self.definitions = Definitions(text)
        self.search = DefinitionSearch(self.definitions)

    @cached_property
    def prices(self) -> dict[str, Price]:
        """The RAM cost of each name."""
        return list_prices(self.definitions)


@lru_cache(maxsize=4096)
def _expand(word: str) -> frozenset[str]:
    """Return the API's words that a player's word is a synonym of."""
    return frozenset(_stem(api) for api, words in SYNONYMS.items() if word in map(_stem, words)) - {word}


def _split(text: str) -> list[str]:
    """Return the stemmed words of a text; camel-case names are split."""
    return [_stem(word.lower()) for word in _WORDS.findall(text) if len(word) > 1]


@lru_cache(maxsize=16384)
def _stem(word: str) -> str:
    """Cut off endings, so that `servers` equals `server`, and `infiltrate` equals `infiltration`."""
    # "running" stays whole: "which scripts are running" does not ask how to run one.
    for ending, replacement in _ENDINGS if word != "running" else ():
        stem = word[: -len(ending)] + replacement
        if word.endswith(ending) and len(stem) >= _MIN_STEM and not _VOWELS.isdisjoint(stem):
            is_doubled = ending in ("ing", "ed") and stem[-1] == stem[-2] and stem[-1] not in "ls"
            word = stem[:-1] if is_doubled else stem  # as in planning, stopped
    return word


_STOP = frozenset(_stem(word) for word in STOP)
