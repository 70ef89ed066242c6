"""Names: when two names of LLMs are one. Pure.

A name is kept in one spelling: composed (NFC), without characters that nobody sees (zero-width, direction
marks), every kind of space as a plain one. Case is kept, and ignored only where a name is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridgehead.runtime.errors import InvalidArgument

MAX_NAME = 200
_DELETE, _LAST_CONTROL = 0x7F, 0x9F
_JOINER = "\u200d"


def canonical_name(name: str) -> str:
    """Return the one spelling of a name, without the space around it."""
    if name.isascii():
        return name.strip()
    import unicodedata  # only names that are not ASCII need it

    composed = unicodedata.normalize("NFC", name)
    kept: list[str] = []
    for character in composed:
        category = unicodedata.category(character)
        if category == "Zs":
            kept.append(" ")
        elif category != "Cf" or (character == _JOINER and _joins_pictures(kept)):
            kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept)).strip()


def _joins_pictures(before: list[str]) -> bool:
    """Tell whether a joiner stands behind an emoji, of which it makes another one, and is seen."""
    import unicodedata

    return bool(before) and unicodedata.category(before[-1]) in {"So", "Sk", "Mn"}


def clean_name(name: str) -> str:
    """Return a name as it is recorded; refuse one that no list could show."""
    if any(is_control(character) for character in name.strip()):
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
    """Tell whether a character is a control character, which would break a line or a terminal."""
    return character < " " or _DELETE <= ord(character) <= _LAST_CONTROL or character in "\u2028\u2029"


def match_names(wanted: str, known: Iterable[str]) -> list[str]:
    """Return the known names that a name means: itself, else those that differ from it only in case."""
    names = list(known)
    cleaned = canonical_name(wanted)
    if cleaned in names:
        return [cleaned]
    folded = cleaned.casefold()
    return [name for name in names if name.casefold() == folded]
