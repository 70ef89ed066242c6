"""Instructions: a day's puzzle text, from its files to the text that a client gets.

`DayXX_phase1.md` and `DayXX_phase2.md` come first, the older `dayXX.json` where there is no first phase in
Markdown. Line endings become LF; nothing else of a text is touched.
"""

# ruff: noqa: PTH118, PTH208 - pathlib would delay the server's first answer

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from bridgehead.runtime.errors import NotFound, StorageError

from . import layout
from .snapshot import Identity, identify, read_snapshot

MAX_BYTES = 4 * 1024 * 1024
"""The longest puzzle text that is read."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Instruction(Struct, frozen=True):
    """The puzzle of one day: one phase, or both."""

    day: int
    phase1: str
    phase2: str | None = None

    @property
    def text(self) -> str:
        """The whole puzzle as a client gets it."""
        if self.phase2 is None:
            return f"# Day {self.day}\n\n{self.phase1}"
        return f"# Day {self.day}\n\n## Phase 1\n{self.phase1}\n\n## Phase 2\n{self.phase2}"


class _Legacy(Struct):
    """The older file of a day."""

    day: int
    phase1: str
    phase2: str | None = None


def read_file(folder: str, name: str, day: int) -> None:
    """Read one file of a day only to see that it can be read."""
    path = os.path.join(folder, name)
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        return
    if name == layout.legacy_name(day):
        _from_legacy(path, day, stored.data)
    else:
        _decoded(path, stored.data)


def read(folder: str, day: int) -> Instruction:
    """Read a day's instructions; raises `NotFound` or `StorageError`, which name the file."""
    phase1 = _markdown(folder, day, 1)
    if phase1 is not None:
        return Instruction(day, phase1, _markdown(folder, day, 2))
    path = os.path.join(folder, layout.legacy_name(day))
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        raise _missing(folder, day)
    return _from_legacy(path, day, stored.data)


def _markdown(folder: str, day: int, phase: int) -> str | None:
    path = os.path.join(folder, layout.markdown_name(day, phase))
    stored = read_snapshot(path, MAX_BYTES)
    return None if stored is None else _decoded(path, stored.data)


def _decoded(path: str, data: bytes) -> str:
    try:
        return with_line_feeds(data.removeprefix(_BYTE_ORDER_MARK).decode())
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.", next_step="Save it as UTF-8."
        ) from error


def _from_legacy(path: str, day: int, data: bytes) -> Instruction:
    try:
        found = msgspec.json.decode(data.removeprefix(_BYTE_ORDER_MARK), type=_Legacy)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _broken(path, day, str(error)) from error
    if found.day != day:
        raise _broken(path, day, f"it says that it is of day {found.day}")
    phase2 = None if found.phase2 is None else with_line_feeds(found.phase2)
    return Instruction(day, with_line_feeds(found.phase1), phase2)


def _broken(path: str, day: int, problem: str) -> StorageError:
    right = f'{{"day": {day}, "phase1": "...", "phase2": "..."}}'
    return StorageError(
        f"{path} is broken: {problem}.",
        next_step=f"Make it {right}, or put the text into {layout.markdown_name(day, 1)} beside it.",
    )


def _missing(folder: str, day: int) -> NotFound:
    first, older = layout.markdown_name(day, 1), layout.legacy_name(day)
    return NotFound(
        f"Instruction file not found for day {day} (tried {first} and {older}).",
        next_step=f"Put the puzzle text into {os.path.join(folder, first)}.",
    )


def with_line_feeds(text: str) -> str:
    """Write line endings as LF, be they CRLF or CR alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def available(folder: str) -> dict[int, frozenset[tuple[str, Identity]]]:
    """Give the days that can be read, and for each which files it is made of right now."""
    found: dict[int, set[tuple[str, Identity]]] = {}
    for day, name, identity in _files(folder):
        found.setdefault(day, set()).add((name, identity))
    return {day: frozenset(files) for day, files in found.items() if _has_beginning(day, files)}


def _files(folder: str) -> Iterator[tuple[int, str, Identity]]:
    try:
        names = os.listdir(folder)
    except OSError:
        return  # no folder, no puzzles; it may come later
    for name in names:
        day = layout.day_of_instruction_file(name)
        identity = None if day is None else identify(os.path.join(folder, name))
        if day is not None and identity is not None:
            yield day, name, identity


def _has_beginning(day: int, files: set[tuple[str, Identity]]) -> bool:
    names = {name for name, _ in files}
    return layout.markdown_name(day, 1) in names or layout.legacy_name(day) in names
