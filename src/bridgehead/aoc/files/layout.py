"""Layout: where the files of one event are, what they are called, and the days that they belong to.

Nothing here opens a file; a folder need not exist.
"""

# ruff: noqa: PTH112, PTH118 - pathlib would delay the server's first answer

from __future__ import annotations

import os
import re
from typing import Annotated

from msgspec import Meta, Struct

from ..settings import AocSettings

FIRST = 1
LAST = 25
DAYS = range(FIRST, LAST + 1)

Day = Annotated[int, Meta(ge=FIRST, le=LAST, description="Day number (1-25)")]
Phase = Annotated[int, Meta(ge=1, le=2, description="Phase (1 or 2)")]

SHORTER_SINCE = 2025
"""From this year on an event has twelve days."""
SHORTER_LAST = 12

INSTRUCTIONS = "instructions"
SPEEDS = "speeds"
ALIASES = "aliases.json"

URI_TEMPLATE = "aoc://day{day}"
_NUMBER = re.compile(r"0[1-9]|1[0-9]|2[0-5]")
_INSTRUCTION_FILE = re.compile(r"Day(\d\d)_phase([12])\.md|day(\d\d)\.json", re.ASCII)
_SPEEDS_FILE = re.compile(r"day(\d\d)\.json", re.ASCII)


def two_digits(day: int) -> str:
    """Write a day with two digits, as URIs and file names have it."""
    return f"{day:02}"


def day_uri(day: int) -> str:
    """Give the URI of a day's instructions."""
    return f"aoc://day{day:02}"


def parse_day(text: str) -> int | None:
    """Read a day as a URI has it, with two digits; None where it is not one."""
    return int(text) if _NUMBER.fullmatch(text) else None


def markdown_name(day: int, phase: int) -> str:
    """Name the file with the text of one phase."""
    return f"Day{day:02}_phase{phase}.md"


def legacy_name(day: int) -> str:
    """Name the older file that has both phases of a day."""
    return f"day{day:02}.json"


def speeds_name(day: int) -> str:
    """Name the file with the speed records of a day."""
    return f"day{day:02}.json"


def day_of_instruction_file(name: str) -> int | None:
    """Tell which day's instructions a file belongs to; None where it is no such file."""
    found = _INSTRUCTION_FILE.fullmatch(name)
    return None if found is None else parse_day(found[1] or found[3])


def day_of_speeds_file(name: str) -> int | None:
    """Tell which day's records a file has; None where it is no such file."""
    found = _SPEEDS_FILE.fullmatch(name)
    return None if found is None else parse_day(found[1])


def last_day(year: int) -> int:
    """Tell the last day of an event, the one without a second puzzle."""
    return SHORTER_LAST if year >= SHORTER_SINCE else LAST


class Folders(Struct, frozen=True):
    """The places of one event's files. None of them needs to exist."""

    instructions: str
    speeds: str
    aliases: str
    """The file with the aliases, which are the same for all years."""


def find_folders(settings: AocSettings, current: str) -> Folders:
    """Find the folders; a year that has one of its own in the data directory lives there."""
    data = settings.data_dir or _default_data(current)
    of_year = os.path.join(data, str(settings.year))
    event = of_year if os.path.isdir(of_year) else data
    return Folders(
        instructions=settings.instructions_dir or os.path.join(event, INSTRUCTIONS),
        speeds=settings.speeds_dir or os.path.join(event, SPEEDS),
        aliases=os.path.join(data, ALIASES),
    )


def _default_data(current: str) -> str:
    if any(os.path.isdir(os.path.join(current, name)) for name in (INSTRUCTIONS, SPEEDS)):
        return current
    from bridgehead.runtime import directories  # brings pathlib and platformdirs, which few starts need

    return str(directories.user_data("aoc"))
