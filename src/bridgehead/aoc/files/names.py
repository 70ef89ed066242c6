"""Names: which names mean the same LLM, by spelling or by `aliases.json`.

Names are stored in one spelling: composed (NFC), without invisible characters (zero-width, direction marks),
with plain spaces. Lookups, aliases and boards compare names by `fold_name`: without case, and with full-width
and mathematical letters and every hyphen as the plain one. So `GPT4` and `gpt4` are one model, shown as most
of its runs have it. Letters of other alphabets stay what they are; a board says which of its names only look
alike (`look_alikes`). The file with the aliases looks like this:

    {"gpt4": ["gpt-4", "gpt4agent"]}

Records keep the name that they were made with; rankings and histories count all names of one LLM as one.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from bridgehead.runtime.errors import InvalidArgument, StorageError

from .entries import Name
from .filters import Skipped
from .snapshot import BYTE_ORDER_MARK, UNDECODABLE, read_snapshot

MAX_NAME = 200
MAX_ALIASES_BYTES = 1024 * 1024
_DELETE, _LAST_CONTROL = 0x7F, 0x9F
_JOINER = "\u200d"
_HYPHENS = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"), "-")
# Cyrillic and Greek letters, folded, that look like a Latin one in lower or in upper case.
_LOOKS = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",
    "abekmhopctyxsijhdqwabezhikmvoptux",
)


def canonical_name(name: str) -> str:
    """Return the one spelling of a name, without the space around it."""
    if name.isascii():
        return name.strip()

    composed = unicodedata.normalize("NFC", name)
    kept: list[str] = []
    for character in composed:
        category = unicodedata.category(character)
        if category == "Zs":
            kept.append(" ")
        # A joiner after an emoji changes how it looks, so it is kept; other format characters are invisible.
        elif category != "Cf" or (
            character == _JOINER and kept and unicodedata.category(kept[-1]) in {"So", "Sk", "Mn"}
        ):
            kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept)).strip()


def fold_name(name: str) -> str:
    """Return what two spellings of one name have in common."""
    if name.isascii():
        return name.casefold()
    return unicodedata.normalize("NFKC", name).translate(_HYPHENS).casefold()


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    """Return the names that a reader cannot tell apart, because they mix alphabets."""
    by_look: dict[str, set[str]] = {}
    for name in names:
        by_look.setdefault(fold_name(name).translate(_LOOKS), set()).add(name)
    return [sorted(alike) for alike in by_look.values() if len({fold_name(name) for name in alike}) > 1]


def clean_name(name: str) -> str:
    """Return the form of a name for records; refuse control characters, empty and overlong names."""
    stripped = name.strip()
    # Fast path: control characters are not printable, so printable names need no per-letter check.
    if not stripped.isprintable() and any(is_control(character) for character in stripped):
        raise InvalidArgument(
            "llm_name has control characters in it.", next_step="Give the name as one line of plain text."
        )
    cleaned = canonical_name(name)
    if not cleaned:
        raise InvalidArgument("llm_name is empty.", next_step="Give the name of the model that solved it.")
    if len(cleaned) > MAX_NAME:
        raise InvalidArgument(
            f"llm_name has {len(cleaned)} characters.", next_step=f"At most {MAX_NAME} are kept."
        )
    return cleaned


def is_control(character: str) -> bool:
    """Return whether a character could break a line or control a terminal."""
    return character < " " or _DELETE <= ord(character) <= _LAST_CONTROL or character in "\u2028\u2029"


def match_names(typed: str, known: Iterable[str]) -> list[str]:
    """Return the known names that match: the exact one, else those that are equal when folded."""
    names = list(known)
    cleaned = canonical_name(typed)
    if cleaned in names:
        return [cleaned]
    folded = fold_name(cleaned)
    return [name for name in names if fold_name(name) == folded]


class Aliases(Struct, frozen=True):
    """Maps each alias to the main name of its LLM."""

    names: dict[str, str] = {}
    identity: object = None
    folded: dict[str, str] = {}
    """The main name for each folded alias; `make_aliases` fills it."""

    def of(self, name: str) -> str:
        """Return the main name for a name in its one spelling, folded or not."""
        exact = self.names.get(name)
        return exact if exact is not None else self.folded.get(fold_name(name), name)

    def look_up(self, name: str) -> str:
        """Return the main name for a typed name, in any spelling and case."""
        return self.of(canonical_name(name))


def make_aliases(names: dict[str, str], identity: object) -> Aliases:
    """Build the aliases from a map of alias to main name."""
    # A main name maps to itself, whatever its case.
    folded = {fold_name(llm): llm for llm in names.values()}
    return Aliases(names, identity, folded | {fold_name(other): llm for other, llm in names.items()})


def merge_spellings(aliases: Aliases, runs: Mapping[str, int]) -> Callable[[str], str]:
    """Return a function from a recorded name to the name of its model; `runs` counts each recorded name.

    Names that are equal when folded are one model. Its name is its alias's main name, or the most frequent
    spelling.
    """
    totals: Counter[str] = Counter()
    for name, n in runs.items():
        totals[aliases.of(name)] += n
    shown: dict[str, str] = {}
    for name, _ in sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])):
        shown.setdefault(fold_name(name), name)
    mains: dict[str, str] = {}

    def name_of(name: str) -> str:
        main = mains.get(name)
        if main is None:
            resolved = aliases.of(name)
            # A model without runs gets the spelling of its first attempt.
            main = mains[name] = shown.setdefault(fold_name(resolved), resolved)
        return main

    return name_of


def read_aliases(path: str) -> Aliases:
    """Read the aliases; none if there is no file. Raises `StorageError` if it is broken."""
    stored = read_snapshot(path, MAX_ALIASES_BYTES)
    if stored is None:
        return Aliases()
    try:
        lists = msgspec.json.decode(stored.data.removeprefix(BYTE_ORDER_MARK), type=dict[Name, list[Name]])
        names: dict[str, str] = {}
        for llm, others in lists.items():
            for other in map(canonical_name, others):
                # An alias must lead to one model, in one step.
                if other in lists and other != llm:
                    raise ValueError(f"{other!r} has aliases of its own and is one of {llm!r}")  # noqa: TRY301
                if names.setdefault(other, canonical_name(llm)) != canonical_name(llm):
                    raise ValueError(f"{other!r} is an alias of both {names[other]!r} and {llm!r}")  # noqa: TRY301
        return make_aliases(names, stored.identity)
    except (*UNDECODABLE, ValueError) as error:
        raise StorageError(
            f"{path} is broken: {error}.",
            next_step='Write it like {"gpt4": ["gpt-4", "gpt4agent"]}.',
            path=path,
        ) from error


def read_or_skip(path: str, skipped: list[Skipped]) -> Aliases:
    """Read the aliases; a broken file is added to `skipped` and counts as empty."""
    try:
        return read_aliases(path)
    except StorageError as problem:
        skipped.append(Skipped(path, problem.message))
        return Aliases()
