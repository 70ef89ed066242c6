"""Wording: times, ratios, boards and histories as short lines of text. Pure.

Every view of a board (a tool's text, the terminal, exports, the picture, the prompt) takes its words from
here, so that all of them show the same figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..files.entries import CLAIMED, EXECUTION, Measure
from ..files.filters import Skipped
from ..files.history import Page
from .standings import Board, Row

METHOD = (
    "All the time an agent took, failures included, divided by the puzzles it solved. 1.8× is 1.8 times the "
    "leader's, over the days that both tried. Leaving out each day in turn shows how much a ratio depends on "
    "single days, and a rank like 2–4 is as exact as that allows: at most 1 board in 20 has a wrong one."
)
FEW_DAYS = "With fewer than 3 shared days, attempts are compared, and this is about these puzzles only."
_UNITS = (("h", 3_600_000), ("min", 60_000), ("s", 1000))
_MEASURES = {"solving": "solving time", "execution": "execution time"}


MAX_NAMES = 30
"""How many known models are named; clients can invent names."""


def duration(milliseconds: float) -> str:
    """Format a time with three digits, in the largest unit that it fills."""
    for unit, size in _UNITS:
        # Rounds up to one whole unit: 1 s, not 1,000 ms.
        if milliseconds >= size * 0.9995:
            return f"{_three_digits(milliseconds / size)} {unit}"
    return f"{_three_digits(milliseconds)} ms"


def dollars(amount: float) -> str:
    """Format an amount in cents, or with two digits if it is less than one."""
    return f"${amount:.2f}" if amount >= 0.01 or not amount else f"${amount:.2g}"  # noqa: PLR2004 - a cent


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - whole numbers from here


def rank(row: Row) -> str:
    """Format the range of ranks; a dash for a model without a rank."""
    if row.rank is None:
        return "–"
    return str(row.rank) if row.rank == row.rank_high else f"{row.rank}–{row.rank_high}"


def ratio(value: float | None) -> str:
    """Format how many times slower than the leader."""
    if value is None:
        return "–"
    if value < 0.01:  # noqa: PLR2004 - would be shown as 0.00
        return "<0.01×"
    return f"{value:,.0f}×" if value >= 100 else f"{value:.2f}×"  # noqa: PLR2004 - whole numbers from here


def interval(row: Row) -> str:
    """Format the interval of a ratio; empty for the leader."""
    if row.low is None or row.high is None or row.low == row.high:
        return ""
    return f"{ratio(row.low).removesuffix('×')}–{ratio(row.high)}"


def count(number: int, noun: str) -> str:
    """Format a number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def measure_name(measure: Measure) -> str:
    """Return the words for a measure."""
    return _MEASURES[measure]


def board_title(board: Board) -> str:
    """Say what was timed, and the grade if there is only one."""
    grade = "" if board.grade is None else f", {board.grade}"
    return f"{measure_name(board.measure).capitalize()}{grade}"


def board_text(board: Board, rows: list[Row]) -> str:
    """Format a board, with its notes below."""
    return "\n".join([rows_text(board, rows), *notes(board)])


def rows_text(board: Board, rows: list[Row]) -> str:
    """Format one page of a board, without its notes."""
    lines = [f"{board_title(board)}:"]
    before: Row | None = None
    for row in rows:
        if is_listed(board, row) and (before is None or not is_listed(board, before)):
            lines.append("Claimed, not ranked:")
        lines.append(_row_text(row))
        before = row
    return "\n".join(lines)


def is_listed(board: Board, row: Row) -> bool:
    """Return whether a row shows claimed times beside a ranking of better ones."""
    return row.unranked == CLAIMED and board.grade is None


def _row_text(row: Row) -> str:
    place = f"{rank(row)}." if row.rank is not None else "–"
    why = f" ({row.unranked})" if row.unranked not in {None, CLAIMED} else ""
    parts = []
    if row.slower is not None:
        parts.append(f"{ratio(row.slower)} the leader" + (f" ({interval(row)})" if interval(row) else ""))
    if row.per_solved is not None:
        parts.append(f"{duration(row.per_solved)} per solved answer")
    if row.median is not None:
        parts.append(f"median {duration(row.median)}")
    lines = [", ".join(parts)] if parts else []
    if row.best is not None:
        spread = "" if row.stdev is None else f", stdev {duration(row.stdev)}"
        slowest = "" if row.p95 is None else f", p95 {duration(row.p95)}"
        on = f"{count(row.n, 'run')} on {count(row.puzzles, 'puzzle')}"
        lines.append(f"{on}, best {duration(row.best)}{spread}{slowest}")
    lines += [grades(row)] if row.verified else []
    lines += _correctness(row)
    return f"{place} {row.llm}{why}: {'; '.join(lines)}"


def grades(row: Row) -> str:
    """Format how many runs have which grade."""
    counts = {"verified": row.verified, "measured": row.measured, "claimed": row.claimed}
    present = {grade: number for grade, number in counts.items() if number}
    if len(present) == 1:
        return next(iter(present))
    return ", ".join(f"{number:,} {grade}" for grade, number in present.items())


def solved(row: Row) -> str:
    """Format how many attempts were solved, and how many failed; empty without checked attempts."""
    return f"{row.solved:,} / {row.failed:,}" if row.solved or row.failed else ""


def _correctness(row: Row) -> list[str]:
    parts = []
    if row.solved or row.failed:
        parts.append(f"solved {row.solved:,}, failed {row.failed:,}, {count(row.wrong, 'wrong answer')}")
    usage = [] if row.tokens is None else [f"{row.tokens:,.0f} tokens"]
    usage += [] if row.cost_usd is None else [dollars(row.cost_usd)]
    return parts + ([f"{' and '.join(usage)} an attempt"] if usage else [])


def notes(board: Board) -> list[str]:
    """Explain how the board was made and what it does not show."""
    lines = []
    if any(row.slower is not None for row in board.rows):
        lines.append(METHOD)
        if board.unit == "attempts":
            lines.append(FEW_DAYS)
    elif board.rows:
        lines.append(
            "Nobody is ranked yet. That takes 2 models that tried the same 3 days and solved 3 answers each, "
            "or 5 attempts each at one puzzle."
        )
    lines += [
        f"{row.llm} ran with several models, in one row: {', '.join(row.models)}."
        for row in board.rows
        if len(row.models) > 1
    ]
    lines += [
        f"Different names that look alike: {', '.join(map(ascii, names))}." for names in board.look_alikes
    ]
    if board.withdrawn:
        each = ", ".join(f"{llm} {n:,}" for llm, n in board.withdrawn.items())
        lines.append(f"Withdrawn, not counted: {each}. speed_history shows them.")
    if board.left_out:
        lines.append(
            f"{count(board.left_out, 'model')} with fewer runs left out; llm_name shows one of them."
        )
    if board.grade == CLAIMED:
        lines.append("All of these times are claimed: nobody measured them.")
    if board.other_runs:
        other: Measure = "solving" if board.measure == EXECUTION else EXECUTION
        lines.append(f"{count(board.other_runs, 'run')} of {measure_name(other)} not shown: measure={other}.")
    return lines


def skipped_notes(skipped: Iterable[Skipped]) -> list[str]:
    """Name the skipped files."""
    return [f"Skipped: {file.problem} Run `bridgehead aoc check`." for file in skipped]


def history_text(page: Page) -> str:
    """Format one page of a history."""
    lines = []
    for run in page.runs:
        marks: list[str] = [EXECUTION] if run.measure == EXECUTION else []
        marks += [run.grade] if run.grade != CLAIMED else []
        marks += ["withdrawn"] if run.withdrawn else []
        details = f" ({', '.join(marks)})" if marks else ""
        text = f"Day {run.day} Phase {run.phase} {run.llm}: {run.speed_ms}ms{details}"
        lines.append(f"{run.timestamp} {text}, id {run.id}")
    return "\n".join(lines)


class NoRuns(NamedTuple):
    """Says that nothing matches, and which models or days exist."""

    text: str
    note: str | None = None

    def __str__(self) -> str:
        """Return both as one text."""
        return self.text if self.note is None else f"{self.text} {self.note}"


def no_runs(llm: str | None, known: Iterable[str], day: int | None, days: Iterable[int]) -> NoRuns:
    """Say that nothing matches, and which models or days there are.

    Never suggest recording a time: a model may take that as an invitation to invent one.
    """
    names, numbers = sorted(known), sorted(days)
    if llm is not None and names and llm not in names:
        more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
        return NoRuns(
            f"No runs of {llm!r} are recorded.", f"Known models: {', '.join(names[:MAX_NAMES])}{more}."
        )
    days_note = f"Days with runs: {', '.join(map(str, numbers))}." if numbers else None
    if day is not None and numbers:
        return NoRuns(f"No runs are recorded for day {day}.", days_note)
    return NoRuns("No runs are recorded for this." if numbers else "No runs are recorded yet.", days_note)
