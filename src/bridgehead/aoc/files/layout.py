"""Layout: where the files of one event are, what they are called, and the days that they belong to.

Nothing here opens a file; a folder need not exist.
"""

# ruff: noqa: PTH112, PTH118 - pathlib would delay the server's first answer

from __future__ import annotations

import os
import re
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

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
INPUTS = "inputs"
ANSWERS = "answers"
ATTEMPTS = "attempts"
ALIASES = "aliases.json"

URI_TEMPLATE = "aoc://day{day}"
INPUT_TEMPLATE = "aoc://day{day}/input"
LEADERBOARD_URI = "aoc://leaderboard"
_NUMBER = re.compile(r"0[1-9]|1[0-9]|2[0-5]")
_INSTRUCTION_FILE = re.compile(r"Day(\d\d)_phase([12])\.md|day(\d\d)\.json", re.ASCII)
_SPEEDS_FILE = re.compile(r"day(\d\d)\.json", re.ASCII)


def two_digits(day: int) -> str:
    """Write a day with two digits, as URIs and file names have it."""
    return f"{day:02}"


def day_uri(day: int) -> str:
    """Give the URI of a day's instructions."""
    return f"aoc://day{day:02}"


def input_uri(day: int) -> str:
    """Give the URI of a day's input."""
    return f"aoc://day{day:02}/input"


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


def journal_name(day: int) -> str:
    """Name the file with the records of a large day that are not in its file yet."""
    return f".day{day:02}.journal"


def input_name(day: int) -> str:
    """Name the file with the puzzle input of a day."""
    return f"day{day:02}.txt"


def answer_name(day: int, phase: int) -> str:
    """Name the file with the right answer to a phase."""
    return f"Day{day:02}_phase{phase}.txt"


def attempts_name(day: int) -> str:
    """Name the file with the attempts at a day."""
    return f"day{day:02}.jsonl"


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
    inputs: str
    answers: str
    attempts: str
    aliases: str
    """The file with the aliases, which are the same for all years."""


def find_folders(settings: AocSettings, current: str) -> Folders:
    """Find the folders of the event.

    The folders at the top of the data directory are those of the default year, unless that has a folder of
    its own. Any other year lives in the folder of its name, also before that exists: it must never read or
    write another's.
    """
    found = folders_in(settings.data_dir or default_data_dir(current), settings.year)
    return replace(
        found,
        instructions=settings.instructions_dir or found.instructions,
        speeds=settings.speeds_dir or found.speeds,
    )


def folders_in(data: str, year: int) -> Folders:
    """Name the folders of an event in a data directory."""
    of_year = os.path.join(data, str(year))
    is_apart = year != AocSettings.year.default or os.path.isdir(of_year)
    event = of_year if is_apart else data
    return Folders(
        instructions=os.path.join(event, INSTRUCTIONS),
        speeds=os.path.join(event, SPEEDS),
        inputs=os.path.join(event, INPUTS),
        answers=os.path.join(event, ANSWERS),
        attempts=os.path.join(event, ATTEMPTS),
        aliases=os.path.join(data, ALIASES),
    )


def default_data_dir(current: str) -> str:
    """Return the data directory where none is set: the current one if it looks like one, else the user's."""
    if any(os.path.isdir(os.path.join(current, name)) for name in (INSTRUCTIONS, SPEEDS)):
        return current
    from bridgehead.runtime import directories  # brings pathlib and platformdirs, which few starts need

    return str(directories.user_data("aoc"))
