"""Answers: the right answers that the user put into `answers/`, to check others against. Never given away.

No tool, resource or message has an answer in it; what leaves this module is a verdict.
"""

# ruff: noqa: PTH118 - one way to write a path in this package

from __future__ import annotations

import os
from typing import Literal

from bridgehead.runtime.errors import StorageError

from . import layout
from .snapshot import read_snapshot

MAX_BYTES = 64 * 1024

Verdict = Literal["right", "wrong", "too_high", "too_low", "unknown"]


def check_answer(folder: str, day: int, phase: int, answer: str) -> Verdict:
    """Compare an answer with the known one; `unknown` where there is none."""
    path = os.path.join(folder, layout.answer_name(day, phase))
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        return "unknown"
    try:
        known = _normalise(stored.data.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError as error:
        raise StorageError(f"{path} is not UTF-8 text.", next_step="Save it as UTF-8.") from error
    given = _normalise(answer)
    if given == known:
        return "right"
    right, said = _number(known), _number(given)
    if right is None or said is None:
        return "wrong"
    return "too_high" if said > right else "too_low"


def _normalise(text: str) -> str:
    """Take away what does not count: space around it, and how lines end."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _number(text: str) -> int | None:
    """Read a whole number of a length that an answer may have."""
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 400  # noqa: PLR2004 - far above any
    return int(text) if is_number else None
