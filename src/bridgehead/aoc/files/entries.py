"""Entries: one speed record as it stands in a day's file, and the rules for what may be in it.

Two keys for the time are read: `speedMs`, which is written, and the older `speed_ms`.
"""

from __future__ import annotations

import time
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from bridgehead.runtime.errors import InvalidArgument

from .layout import Phase

MAX_MS = 2**63 - 1
MAX_NAME = 200
_DELETE, _LAST_CONTROL = 0x7F, 0x9F

Milliseconds = Annotated[int, Meta(ge=0, le=MAX_MS)]
Name = Annotated[str, Meta(min_length=1)]


class Entry(Struct, gc=False):
    """One record as it is read."""

    llm: Name
    phase: Phase
    timestamp: str
    speed_ms: Milliseconds | UnsetType = field(default=UNSET, name="speedMs")
    older_speed_ms: Milliseconds | UnsetType = field(default=UNSET, name="speed_ms")

    @property
    def time(self) -> int:
        """The time that it took; raises LookupError where the entry has none."""
        for found in (self.speed_ms, self.older_speed_ms):
            if not isinstance(found, UnsetType):
                return found
        raise LookupError("neither `speedMs` nor the older `speed_ms` is there")


class Run(Struct, gc=False):
    """The part of a record that a ranking needs, read fast; names and times are checked in bulk."""

    llm: str
    phase: Phase
    time: int = field(name="speedMs")


class NewEntry(Struct, frozen=True):
    """One record as it is written, its keys in the order of the contract."""

    llm: str
    phase: int
    time: int = field(name="speedMs")
    timestamp: str


def clean_name(name: str) -> str:
    """Give an LLM's name without the space around it; refuse one that no list could show."""
    cleaned = name.strip()
    if not cleaned:
        raise InvalidArgument("llm_name is empty.", next_step="Give the name of the model that solved it.")
    if len(cleaned) > MAX_NAME:
        raise InvalidArgument(
            f"llm_name has {len(cleaned)} characters.", next_step=f"At most {MAX_NAME} are kept."
        )
    if any(is_control(character) for character in cleaned):
        raise InvalidArgument(
            "llm_name has control characters in it.", next_step="Give the name as one line of plain text."
        )
    return cleaned


def is_control(character: str) -> bool:
    """Tell whether a character is a control character, which would break a line or a terminal."""
    return character < " " or _DELETE <= ord(character) <= _LAST_CONTROL or character in "\u2028\u2029"


def timestamp(seconds: float) -> str:
    """Write a moment as ISO 8601 in UTC, with milliseconds."""
    whole, thousandths = divmod(int(seconds * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{thousandths:03}Z"
