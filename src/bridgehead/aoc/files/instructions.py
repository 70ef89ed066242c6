"""Instructions: a day's puzzle text and input, and verdicts on answers.

`DayXX_phase1.md` and `DayXX_phase2.md` win over the contract's older `dayXX.json`. Line endings become LF;
nothing else of a text changes. Known answers never leave this module: it returns verdicts only.
"""

# ruff: noqa: PTH118 - paths are strings here

from __future__ import annotations

import os
from typing import Literal

import msgspec
from msgspec import Struct

from bridgehead.runtime.errors import BridgeError, NotFound, StorageError
from bridgehead.runtime.lines import split_lines

from . import layout
from .snapshot import BYTE_ORDER_MARK, UNDECODABLE, read_snapshot

MAX_BYTES = 4 * 1024 * 1024
"""The longest puzzle text or input that is read."""
MAX_ANSWER_BYTES = 64 * 1024

Verdict = Literal["right", "wrong", "too_high", "too_low", "unknown"]


class Instruction(Struct, frozen=True):
    """The puzzle of one day: one phase, or both."""

    day: int
    phase1: str
    phase2: str | None = None
    problem: BridgeError | None = None
    """Why the second phase cannot be read, although its file exists."""

    @property
    def text(self) -> str:
        """The complete puzzle for a client."""
        second = self.phase2 if self.problem is None else f"(Phase 2 cannot be shown: {self.problem})"
        if second is None:
            return f"# Day {self.day}\n\n{self.phase1}"
        return f"# Day {self.day}\n\n## Phase 1\n{self.phase1}\n\n## Phase 2\n{second}"


def text_of_phase(instruction: Instruction, phase: int, year: int) -> str:
    """Return the text for solving one phase: the first alone, or both. Raises if there is no second.

    The text of phase 2 hints at the answer of phase 1, so it is not shown to a model that solves phase 1.
    """
    day = instruction.day
    if phase == 1:
        return Instruction(day, instruction.phase1).text
    if instruction.problem is not None:
        raise instruction.problem
    if instruction.phase2 is None and day == layout.last_day(year):
        raise NotFound(f"Day {day} is the last day of {year} and has no second puzzle.")
    if instruction.phase2 is None:
        raise NotFound(
            f"Day {day} has no second phase yet.",
            next_step=f"Put its text into {layout.markdown_name(day, 2)} beside the first one.",
        )
    return instruction.text


class _Legacy(Struct):
    """The older file of a day."""

    day: int
    phase1: str
    phase2: str | None = None


def check_file(folder: str, name: str, day: int) -> None:
    """Raise if a file of a day cannot be read."""
    path = os.path.join(folder, name)
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        return
    if name == layout.legacy_name(day):
        _decode_legacy(path, day, stored.data)
    else:
        _decode_text(path, stored.data)


def check_text(path: str) -> None:
    """Raise if an input or an answer cannot be read."""
    stored = read_snapshot(path, MAX_BYTES)
    if stored is not None:
        _decode_text(path, stored.data)


def read_instruction(folder: str, day: int) -> Instruction:
    """Read a day's instructions; raises `NotFound` or `StorageError`, which name the file."""
    phase1 = _read_markdown(folder, day, 1)
    if phase1 is not None:
        try:
            return Instruction(day, phase1, _read_markdown(folder, day, 2))
        except StorageError as problem:
            return Instruction(day, phase1, problem=problem)
    path = os.path.join(folder, layout.legacy_name(day))
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        first, older = layout.markdown_name(day, 1), layout.legacy_name(day)
        days = ", ".join(map(str, sorted(layout.list_days(folder))))
        known = (
            f"Days with a text: {days}."
            if days
            else "No day has a text yet: `bridgehead aoc init` makes a first puzzle to try."
        )
        raise NotFound(
            f"Instruction file not found for day {day} (tried {first} and {older}).",
            next_step=f"Put the puzzle text into {os.path.join(folder, first)}. {known}",
            path=os.path.join(folder, first),
        )
    return _decode_legacy(path, day, stored.data)


def read_input(folder: str, day: int) -> str:
    """Read the puzzle input of a day; raises `NotFound` or `StorageError`."""
    path = os.path.join(folder, layout.input_name(day))
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        raise NotFound(f"There is no input for day {day}.", next_step=f"Put it into {path}.", path=path)
    return _decode_text(path, stored.data)


def _read_markdown(folder: str, day: int, phase: int) -> str | None:
    path = os.path.join(folder, layout.markdown_name(day, phase))
    stored = read_snapshot(path, MAX_BYTES)
    return None if stored is None else _decode_text(path, stored.data)


def _decode_text(path: str, data: bytes) -> str:
    try:
        return with_line_feeds(data.removeprefix(BYTE_ORDER_MARK).decode())
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.",
            next_step="Save it as UTF-8.",
            path=path,
        ) from error


def _decode_legacy(path: str, day: int, data: bytes) -> Instruction:
    try:
        legacy = msgspec.json.decode(data.removeprefix(BYTE_ORDER_MARK), type=_Legacy)
    except UNDECODABLE as error:
        raise _broken(path, day, str(error)) from error
    if legacy.day != day:
        raise _broken(path, day, f"it says day {legacy.day}")
    phase2 = None if legacy.phase2 is None else with_line_feeds(legacy.phase2)
    return Instruction(day, with_line_feeds(legacy.phase1), phase2)


def _broken(path: str, day: int, problem: str) -> StorageError:
    form = f'{{"day": {day}, "phase1": "...", "phase2": "..."}}'
    return StorageError(
        f"{path} is broken: {problem}.",
        next_step=f"Write it as {form}, or put the text into {layout.markdown_name(day, 1)} beside it.",
        path=path,
    )


def with_line_feeds(text: str) -> str:
    """Convert CRLF and CR to LF, as the contract has it on every system."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_answer(folder: str, day: int, phase: int, answer: str, other: str = "") -> Verdict:
    """Compare an answer with the known one, to the day's input or another; `unknown` if there is none."""
    path = os.path.join(folder, layout.answer_name(day, phase, other))
    stored = read_snapshot(path, MAX_ANSWER_BYTES)
    if stored is None:
        return "unknown"
    known, proposed = _normalise(_decode_text(path, stored.data)), _normalise(answer)
    if proposed == known:
        return "right"
    right, wrong = _number(known), _number(proposed)
    # As the site does: a hint only if both are numbers. 0447 is 447, unless the right answer is a code that
    # begins with a zero.
    if right is None or wrong is None or known != str(right):
        return "wrong"
    if wrong == right:
        return "right"
    return "too_high" if wrong > right else "too_low"


def has_answer(folder: str, day: int, phase: int) -> bool:
    """Return whether the right answer to a phase is known."""
    return layout.identify(os.path.join(folder, layout.answer_name(day, phase))) is not None


def _normalise(text: str) -> str:
    """Remove irrelevant differences: surrounding space and the kind of line ends."""
    return "\n".join(line.rstrip() for line in split_lines(text.strip()))


def _number(text: str) -> int | None:
    """Parse an integer of at most 400 digits; None otherwise. Longer ones take `int` quadratic time."""
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 400  # noqa: PLR2004 - far above any
    return int(text) if is_number else None
