"""Days: the puzzles of an event by number, and the names that files and resources have for them."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

FIRST = 1
LAST = 25
DAYS = range(FIRST, LAST + 1)

Day = Annotated[int, Meta(ge=FIRST, le=LAST, description="Day number (1-25)")]
Phase = Annotated[int, Meta(ge=1, le=2, description="Phase (1 or 2)")]

SHORTER_SINCE = 2025
"""From this year on an event has twelve days."""
SHORTER_LAST = 12

URI_TEMPLATE = "aoc://day{day}"
_NUMBER = re.compile(r"0[1-9]|1[0-9]|2[0-5]")
_INSTRUCTION_FILE = re.compile(r"Day(\d\d)_phase([12])\.md|day(\d\d)\.json", re.ASCII)
_SPEEDS_FILE = re.compile(r"day(\d\d)\.json", re.ASCII)


def padded(day: int) -> str:
    """Write a day with two digits, as URIs and file names have it."""
    return f"{day:02}"


def uri(day: int) -> str:
    """Give the URI of a day's instructions."""
    return f"aoc://day{day:02}"


def of_number(text: str) -> int | None:
    """Read a day as a URI has it, with two digits; None where it is not one."""
    return int(text) if _NUMBER.fullmatch(text) else None


def markdown(day: int, phase: int) -> str:
    """Name the file with the text of one phase."""
    return f"Day{day:02}_phase{phase}.md"


def legacy(day: int) -> str:
    """Name the older file that has both phases of a day."""
    return f"day{day:02}.json"


def speeds(day: int) -> str:
    """Name the file with the speed records of a day."""
    return f"day{day:02}.json"


def of_instruction_file(name: str) -> int | None:
    """Tell which day's instructions a file belongs to; None where it is no such file."""
    found = _INSTRUCTION_FILE.fullmatch(name)
    return None if found is None else of_number(found[1] or found[3])


def of_speeds_file(name: str) -> int | None:
    """Tell which day's records a file has; None where it is no such file."""
    found = _SPEEDS_FILE.fullmatch(name)
    return None if found is None else of_number(found[1])


def last_of(year: int) -> int:
    """Tell the last day of an event, the one without a second puzzle."""
    return SHORTER_LAST if year >= SHORTER_SINCE else LAST
