"""Doctor: read every file of a workspace and report problems. Blocks.

`bridgehead aoc check` lists all of them, `bridgehead doctor` the first few.
"""

# ruff: noqa: PTH112, PTH118, PTH208 - one way to write a path in this package

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, settings_finding
from bridgehead.runtime.stores import migrations

from .files import attempts, day_document, instructions, layout
from .files.day_document import CorruptDay
from .files.entries import Entry
from .files.layout import Folders
from .files.names import canonical_name, is_control, read_aliases
from .files.snapshot import BYTE_ORDER_MARK, UNDECODABLE, read_snapshot
from .settings import AocSettings
from .workspace import open_workspace

_SHOWN = 3
"""How many problems `doctor` shows."""
_OTHER = re.compile(r"-\w+(?=\.txt$)")
"""What the name of another input, or of its answer, has before its ending."""
_LIKELY_NAME = re.compile(r"day\W*\d+.*\.(md|jsonl?|txt)", re.IGNORECASE)
"""Names that a user may expect to be read; other files in the folders are ignored."""


class Problem(NamedTuple):
    """A problem with a file."""

    path: str
    text: str


class CheckResult(NamedTuple):
    """The result of a check."""

    files: int
    problems: list[Problem]


def check(folders: Folders) -> CheckResult:
    """Read every file."""
    files, problems = 0, []
    checks = (
        (folders.instructions, _instruction),
        (folders.inputs, _plain_text),
        (folders.answers, _plain_text),
        (folders.speeds, _speeds),
        (folders.attempts, _attempts),
    )
    for folder, check_file in checks:
        try:
            names = sorted(name for name in os.listdir(folder) if _LIKELY_NAME.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):
            names = []
        for name in names:
            files += 1
            path = os.path.join(folder, name)
            problems += [Problem(path, text) for text in check_file(folder, name)]
    if os.path.lexists(folders.aliases):
        files += 1
        try:
            read_aliases(folders.aliases)
        except BridgeError as error:
            text = str(error).removeprefix(f"{folders.aliases} ")
            problems.append(Problem(folders.aliases, text))
    return CheckResult(files, problems)


def _instruction(folder: str, name: str) -> Iterator[str]:
    day = layout.day_of_instruction_file(name)
    if day is None:
        yield "is never read: names are Day01_phase1.md, Day01_phase2.md or day01.json, up to 25"
        return
    first = layout.markdown_name(day, 1)
    if name == layout.markdown_name(day, 2) and not os.path.lexists(os.path.join(folder, first)):
        yield f"is never read: {first} is missing"
    try:
        instructions.check_file(folder, name, day)
    except BridgeError as error:
        yield str(error)


def _plain_text(folder: str, name: str) -> Iterator[str]:
    plain = _OTHER.sub("", name)
    is_input = plain in {layout.input_name(day) for day in layout.DAYS}
    is_answer = plain in {layout.answer_name(day, phase) for day in layout.DAYS for phase in (1, 2)}
    if not (is_input or is_answer):
        yield "is never read: inputs are day01.txt, answers Day01_phase1.txt, up to 25"
        return
    try:
        instructions.check_text(os.path.join(folder, name))
    except BridgeError as error:
        yield str(error)


def _attempts(folder: str, name: str) -> Iterator[str]:
    try:
        wrong = attempts.find_wrong_lines(os.path.join(folder, name))
    except BridgeError as error:
        yield str(error)
        return
    yield from (f"line {line}: is not a step of an attempt and does not count. Remove it" for line in wrong)


def _speeds(folder: str, name: str) -> Iterator[str]:
    day = layout.day_of_speeds_file(name)
    if day is None:
        yield "is never read: names are day01.json to day25.json"
        return
    try:
        stored = read_snapshot(os.path.join(folder, name), day_document.MAX_BYTES)
    except BridgeError as error:
        yield str(error)
        return
    if stored is not None:
        yield from find_problems(stored.data, day)


def find_problems(data: bytes, day: int) -> Iterator[str]:
    """Find every problem of a day's records, with its line and a next step."""
    text = data.removeprefix(BYTE_ORDER_MARK)
    try:
        entries = dict(enumerate(day_document.decode_day(data, day)))
    except CorruptDay as problem:
        # The decoder stops at the first problem; a user wants to see all of them.
        wrong_entries, entries = _decode_singly(text, day)
        yield from wrong_entries or [
            f"{problem}. Fix or move the file: until then no record of this day counts"
        ]
    doubts = [(place, wrong) for place, entry in entries.items() for wrong in _find_suspicious(entry)]
    lines = day_document.lines_of_entries(text) if doubts else []
    yield from (f"line {lines[place]}: {wrong}" for place, wrong in doubts)


def _find_suspicious(entry: Entry) -> Iterator[str]:
    """Find suspicious values in a valid entry."""
    if not entry.timestamp:
        yield "the entry has no `timestamp` and counts as the oldest. Add one: 2025-12-01T10:30:00.000Z"
    else:
        try:
            datetime.fromisoformat(entry.timestamp)
        except ValueError:
            yield f"{entry.timestamp!r} is not an ISO 8601 timestamp. Write it as 2025-12-01T10:30:00.000Z"
    if any(is_control(character) for character in entry.llm):
        yield f"the name {entry.llm!r} has control characters. Remove them"
    elif canonical_name(entry.llm) != entry.llm:
        yield (
            f"the name {entry.llm!r} looks like {canonical_name(entry.llm)!r} and counts as it. "
            "Rename it to avoid confusion"
        )


def _decode_singly(data: bytes, day: int) -> tuple[list[str], dict[int, Entry]]:
    """Decode each entry separately, so that an invalid one does not hide the next."""
    wrong: list[str] = []
    fine: dict[int, Entry] = {}
    try:
        raws = day_document.raw_entries(data)
    except UNDECODABLE:
        return wrong, fine
    for line, (place, raw) in zip(day_document.lines_of_entries(data), enumerate(raws), strict=True):
        alone = b'{"day": %d, "entries": [%b]}' % (day, raw)
        try:
            (fine[place],) = day_document.decode_day(alone, day)
        except CorruptDay as problem:
            wrong.append(f"line {line}: {str(problem).removeprefix('line 1: ')}. Fix or remove this entry")
    return wrong, fine


async def examine(environment: Mapping[str, str]) -> list[Finding]:
    """Check settings, folders, records and files."""
    settings = AocSettings(environment)
    workspace = open_workspace(settings)
    report = await asyncio.to_thread(check, workspace.folders)
    count = len(workspace.days())
    if settings.database_url is None:
        records = _folder("records", workspace.folders.speeds, "kept", is_made_later=bool(count))
    else:
        from .database import read_schema  # lazy: PostgreSQL, 14 ms

        kept = "records, attempts and aliases"
        records = await migrations.examine(settings.database_url, read_schema, kept)
    findings = [
        settings_finding(settings, environment),
        _folder(
            "puzzles",
            workspace.folders.instructions,
            f"{count} day{'' if count == 1 else 's'} of {settings.year}",
        ),
        records,
    ]
    if not report.problems:
        read = f"{report.files} read, all valid" if report.files else "none to read yet"
        findings.append(Finding("files", "right", read))
    findings += [
        Finding("files", "wrong", f"{problem.path}: {problem.text}", "Run `bridgehead aoc check`.")
        for problem in report.problems[:_SHOWN]
    ]
    return findings


def _folder(what: str, folder: str, detail: str, *, is_made_later: bool = False) -> Finding:
    if os.path.isdir(folder):
        return Finding(what, "right", f"{detail}, in {folder}")
    if is_made_later:
        return Finding(what, "right", f"none yet; the first one makes {folder}")
    advice = "Run `bridgehead aoc init` for a first puzzle, or set AOC_DATA_DIR to a folder of yours."
    return Finding(what, "note", f"{folder} is not there yet", advice)
