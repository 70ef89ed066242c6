"""Layout: folders, file names and URIs of one year, which days have files, and whether a file changed.

Opens no file. Folders need not exist.
"""

# ruff: noqa: PTH112, PTH113, PTH116, PTH118, PTH120, PTH208 - paths are strings here

from __future__ import annotations

import os
import re
import stat
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from bridgehead.runtime import directories

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
BENCH = "bench"
ALIASES = "aliases.json"

URI_TEMPLATE = "aoc://day{day}"
INPUT_TEMPLATE = "aoc://day{day}/input"
LEADERBOARD_URI = "aoc://leaderboard"
_NUMBER = re.compile(r"0[1-9]|1[0-9]|2[0-5]")
_INSTRUCTION_FILE = re.compile(r"Day(\d\d)_phase([12])\.md|day(\d\d)\.json", re.ASCII)
_SPEEDS_FILE = re.compile(r"day(\d\d)\.json", re.ASCII)


def two_digits(day: int) -> str:
    """Format a day with two digits, as in URIs and file names."""
    return f"{day:02}"


def day_uri(day: int) -> str:
    """Return the URI of a day's instructions."""
    return f"aoc://day{day:02}"


def input_uri(day: int) -> str:
    """Return the URI of a day's input."""
    return f"aoc://day{day:02}/input"


def parse_day(text: str) -> int | None:
    """Parse the two digits of a day in a URI; None if they are not a day."""
    return int(text) if _NUMBER.fullmatch(text) else None


def markdown_name(day: int, phase: int) -> str:
    """Name the file with the text of one phase."""
    return f"Day{day:02}_phase{phase}.md"


def legacy_name(day: int) -> str:
    """Name the older file of the contract, which has both phases of a day."""
    return f"day{day:02}.json"


def speeds_name(day: int) -> str:
    """Name the file with the speed records of a day."""
    return f"day{day:02}.json"


def journal_name(day: int) -> str:
    """Name the journal that version 0.3 kept of a large day."""
    return f".day{day:02}.journal"


def input_name(day: int, other: str = "") -> str:
    """Name the file with the puzzle input of a day; `other` is the end of another input's name."""
    return f"day{day:02}{other}.txt"


_INPUT_DAYS = {input_name(day): day for day in DAYS}


def answer_name(day: int, phase: int, other: str = "") -> str:
    """Name the file with the right answer to a phase; `other` is the end of another input's name."""
    return f"Day{day:02}_phase{phase}{other}.txt"


def attempts_name(day: int) -> str:
    """Name the file with the attempts at a day."""
    return f"day{day:02}.jsonl"


def day_of_instruction_file(name: str) -> int | None:
    """Return the day of an instruction file; None for any other name."""
    match = _INSTRUCTION_FILE.fullmatch(name)
    return None if match is None else parse_day(match[1] or match[3])


def day_of_speeds_file(name: str) -> int | None:
    """Return the day of a records file; None for any other name."""
    match = _SPEEDS_FILE.fullmatch(name)
    return None if match is None else parse_day(match[1])


class Identity(NamedTuple):
    """Changes with a file's content: a replacement has another inode, a write another time."""

    inode: int
    size: int
    modified: int
    changed: int


def identify(path: str) -> Identity | None:
    """Return the identity of the regular file at a path; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Identity(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def last_day(year: int) -> int:
    """Return the last day of a year, the one without a second puzzle."""
    return SHORTER_LAST if year >= SHORTER_SINCE else LAST


def list_days(folder: str) -> dict[int, frozenset[tuple[str, Identity]]]:
    """List the days that have a puzzle, each with its files and their identities."""
    days: dict[int, dict[str, Identity]] = {}
    for name in _names(folder):
        day = day_of_instruction_file(name)
        identity = None if day is None else identify(os.path.join(folder, name))
        if day is not None and identity is not None:
            days.setdefault(day, {})[name] = identity
    # A second phase alone is no puzzle.
    return {
        day: frozenset(files.items())
        for day, files in days.items()
        if markdown_name(day, 1) in files or legacy_name(day) in files
    }


def has_puzzle(folder: str, day: int) -> bool:
    """Return whether `list_days` would contain a day, without listing the folder."""
    newer, older = markdown_name(day, 1), legacy_name(day)
    return os.path.isfile(os.path.join(folder, newer)) or os.path.isfile(os.path.join(folder, older))


def list_inputs(folder: str) -> dict[int, Identity]:
    """List the days that have an input, each with the identity of its file."""
    inputs: list[tuple[int, Identity]] = []
    for name in _names(folder):
        day = _INPUT_DAYS.get(name)
        identity = None if day is None else identify(os.path.join(folder, name))
        if day is not None and identity is not None:
            inputs.append((day, identity))
    return dict(sorted(inputs))


def list_other_inputs(folder: str, day: int) -> list[str]:
    """List the ends of the names of a day's other inputs, such as `-2` for `day01-2.txt`."""
    other = re.compile(rf"day{day:02}(-\w+)\.txt")
    return sorted(match[1] for name in _names(folder) if (match := other.fullmatch(name)))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # no folder means no puzzles; it may be created later


class Anchor(Struct, frozen=True):
    """An existing folder and the devices above it, to detect that its disk was unmounted."""

    path: str
    below: frozenset[int] = frozenset()
    """Devices of the folders above it, except its own. Once its disk is unmounted, the path is on one of
    these; a disk that is mounted again may have a new device."""

    @property
    def is_there(self) -> bool:
        """Whether the folder still exists and its disk is still mounted."""
        try:
            return os.stat(self.path).st_dev not in self.below
        except OSError:
            return False


def find_anchor(folder: str, required: str | None = None) -> Anchor:
    """Return the folder itself, or the nearest one above it that exists, but none above `required`."""
    path = folder
    while not os.path.isdir(path) and path not in {required, os.path.dirname(path)}:
        path = os.path.dirname(path)
    below: set[int] = set()
    above = path
    try:
        own = os.stat(path).st_dev
        while above != os.path.dirname(above):
            above = os.path.dirname(above)
            below.add(os.stat(above).st_dev)
    except OSError:  # it does not exist, or was removed just now
        return Anchor(path)
    return Anchor(path, frozenset(below - {own}))


class Folders(Struct, frozen=True):
    """Paths of one year's files. None of them needs to exist."""

    instructions: str
    speeds: str
    inputs: str
    answers: str
    attempts: str
    bench: str
    """Journal, transcripts and report of `bridgehead aoc bench`."""
    aliases: str
    """The aliases file, shared by all years."""
    required: str | None = None
    """The data directory, if a setting names it: it has to exist."""


def find_folders(settings: AocSettings, current: str) -> Folders:
    """Return the folders of the configured year."""
    folders = folders_in(settings.data_dir or default_data_dir(current), settings.year)
    return replace(folders, required=settings.data_dir)


def folders_in(data: str, year: int) -> Folders:
    """Return the folders of a year in a data directory."""
    # The contract's layout has no years: folders at the top belong to the default year, unless that has a
    # folder of its own. Any other year uses the folder of its name even before it exists, so that it never
    # reads or writes another year's files.
    year_folder = os.path.join(data, str(year))
    is_apart = year != AocSettings.year.default or os.path.isdir(year_folder)
    folder = year_folder if is_apart else data
    return Folders(
        instructions=os.path.join(folder, INSTRUCTIONS),
        speeds=os.path.join(folder, SPEEDS),
        inputs=os.path.join(folder, INPUTS),
        answers=os.path.join(folder, ANSWERS),
        attempts=os.path.join(folder, ATTEMPTS),
        bench=os.path.join(folder, BENCH),
        aliases=os.path.join(data, ALIASES),
    )


def default_data_dir(current: str) -> str:
    """Return the current directory if it has puzzles or records, else the user's data directory."""
    if any(os.path.isdir(os.path.join(current, name)) for name in (INSTRUCTIONS, SPEEDS)):
        return current

    return str(directories.user_data("aoc"))
