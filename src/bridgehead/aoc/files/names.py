"""Names: which names mean the same LLM, by spelling or by `aliases.json`.

Names are stored in one spelling: composed (NFC), without invisible characters (zero-width, direction marks),
with plain spaces. Case is kept, and ignored in lookups, aliases and boards: `GPT4` and `gpt4` are one model,
shown as most of its runs have it. The file with the aliases looks like this:

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
    """Return the known names that match: the exact one, else those that differ only in case."""
    names = list(known)
    cleaned = canonical_name(typed)
    if cleaned in names:
        return [cleaned]
    folded = cleaned.casefold()
    return [name for name in names if name.casefold() == folded]


class Aliases(Struct, frozen=True):
    """Maps each alias to the main name of its LLM."""

    names: dict[str, str] = {}
    identity: object = None
    folded: dict[str, str] = {}
    """The main name for each alias without its case; `make_aliases` fills it."""

    def of(self, name: str) -> str:
        """Return the main name for a name in its one spelling, in any case."""
        exact = self.names.get(name)
        return exact if exact is not None else self.folded.get(name.casefold(), name)

    def look_up(self, name: str) -> str:
        """Return the main name for a typed name, in any spelling and case."""
        return self.of(canonical_name(name))


def make_aliases(names: dict[str, str], identity: object) -> Aliases:
    """Build the aliases from a map of alias to main name."""
    # A main name maps to itself, whatever its case.
    folded = {llm.casefold(): llm for llm in names.values()}
    return Aliases(names, identity, folded | {other.casefold(): llm for other, llm in names.items()})


def merge_spellings(aliases: Aliases, runs: Mapping[str, int]) -> Callable[[str], str]:
    """Return a function from a recorded name to the name of its model; `runs` counts each recorded name.

    Names that differ only in case are one model. Its name is its alias's main name, or the most frequent
    spelling.
    """
    totals: Counter[str] = Counter()
    for name, n in runs.items():
        totals[aliases.of(name)] += n
    shown: dict[str, str] = {}
    for name, _ in sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])):
        shown.setdefault(name.casefold(), name)
    mains: dict[str, str] = {}

    def name_of(name: str) -> str:
        main = mains.get(name)
        if main is None:
            resolved = aliases.of(name)
            # A model without runs gets the spelling of its first attempt.
            main = mains[name] = shown.setdefault(resolved.casefold(), resolved)
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
