"""Wording: times, ratios, boards and histories as short lines of text. Pure.

Every view of a board (a tool's text, the terminal, exports, the picture, the prompt) takes its words from
here, so that all of them show the same figures.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..files.entries import CLAIMED, EXECUTION, Measure
from .board import Board, Row, Skipped
from .history import Page

METHOD = (
    "Ranked by the geometric mean of the ratios to the leader's medians on shared puzzles; "
    "models whose 95 % intervals overlap share a rank."
)
PROVISIONAL = "Provisional: fewer than 5 runs, or fewer than half of the puzzles shared with the leader."
_UNITS = (("h", 3_600_000), ("min", 60_000), ("s", 1000))
_MEASURES = {"solving": "solving time", "execution": "execution time"}


def duration(milliseconds: float) -> str:
    """Format a time with three digits, in the largest unit that it fills."""
    for unit, size in _UNITS:
        # Rounds up to one whole unit: 1 s, not 1,000 ms.
        if milliseconds >= size * 0.9995:
            return f"{_three_digits(milliseconds / size)} {unit}"
    return f"{_three_digits(milliseconds)} ms"


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - whole numbers from here


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


def board_text(board: Board, rows: list[Row], total: int, next_offset: int | None = None) -> str:
    """Format one page of a board, with its notes below."""
    lines = [f"{measure_name(board.measure).capitalize()}:", *map(_row_text, rows), *notes(board)]
    if next_offset is not None:
        lines.append(f"{total} in all; for more: offset {next_offset}")
    return "\n".join(lines)


def _row_text(row: Row) -> str:
    mark = " (provisional)" if row.provisional else ""
    if row.best is None or row.median is None:
        return f"{row.rank}. {row.llm}{mark}: no solved runs{_correctness(row)}"
    compared = "no puzzle shared with the leader" if row.slower is None else f"{ratio(row.slower)} the leader"
    between = f" ({interval(row)})" if interval(row) else ""
    spread = "" if row.stdev is None else f", stdev {duration(row.stdev)}"
    slowest = "" if row.p95 is None else f", p95 {duration(row.p95)}"
    return (
        f"{row.rank}. {row.llm}{mark}: "
        f"median {duration(row.median)}, {compared}{between}; "
        f"{count(row.n, 'run')} on {count(row.puzzles, 'puzzle')}, best {duration(row.best)}{spread}{slowest}"
        f"{claims(row)}{_correctness(row)}"
    )


def claims(row: Row) -> str:
    """Format how many of the runs were claimed, not measured; empty if none."""
    if not row.claimed:
        return ""
    return "; claimed" if row.claimed == row.n else f"; {row.claimed:,} of them claimed"


def solved(row: Row) -> str:
    """Format how many of the attempts were solved; empty without attempts."""
    return f"{row.solved} of {row.attempts}" if row.attempts else ""


def _correctness(row: Row) -> str:
    parts = [f"; solved {solved(row)}"] if row.attempts else []
    if row.tokens is not None:
        parts.append(f", {row.tokens:,.0f} tokens")
    if row.cost_usd is not None:
        parts.append(f", ${row.cost_usd:.4g}")
    return "".join(parts)


def notes(board: Board) -> list[str]:
    """Explain how the board was made and what it does not show."""
    lines = [METHOD] if board.rows else []
    if any(row.provisional for row in board.rows):
        lines.append(PROVISIONAL)
    if not board.is_even:
        lines.append(
            "Not every model ran the same puzzles: filter by day and phase to compare like with like."
        )
    claimed = sum(row.claimed for row in board.rows)
    if claimed:
        total = sum(row.n for row in board.rows)
        lines.append(
            f"{claimed:,} of {count(total, 'run')} {'was' if claimed == 1 else 'were'} claimed, not measured."
        )
    if board.other_runs:
        other: Measure = "solving" if board.measure == EXECUTION else EXECUTION
        lines.append(f"{count(board.other_runs, 'run')} of {measure_name(other)} not shown: measure={other}.")
    return lines


def skipped_text(skipped: Iterable[Skipped]) -> str:
    """Name the skipped files, one per line."""
    return "".join(f"\nSkipped: {file.problem} Run `bridgehead aoc check`." for file in skipped)


def history_text(page: Page) -> str:
    """Format one page of a history."""
    lines = []
    for run in page.runs:
        marks: list[str] = [EXECUTION] if run.measure == EXECUTION else []
        marks += [run.grade] if run.grade != CLAIMED else []
        marks += ["withdrawn"] if run.withdrawn else []
        details = f" ({', '.join(marks)})" if marks else ""
        lines.append(f"{run.timestamp} Day {run.day} Phase {run.phase} {run.llm}: {run.speed_ms}ms{details}")
    if page.older is not None:
        lines.append(f"{page.total} in all; for the next page: older {page.older}")
    return "\n".join(lines)


def no_runs_text(llm: str | None, known: Iterable[str], day: int | None, days: Iterable[int]) -> str:
    """Say that nothing matches, and which models or days there are.

    Never suggest recording a time: a model may take that as an invitation to invent one.
    """
    names, numbers = sorted(known), sorted(days)
    if llm is not None and names and llm not in names:
        return f"No runs of {llm!r} are recorded. Known models: {', '.join(names)}."
    if day is not None and numbers:
        return f"No runs are recorded for day {day}. Days with runs: {', '.join(map(str, numbers))}."
    if numbers:
        return f"No runs are recorded for this. Days with runs: {', '.join(map(str, numbers))}."
    return "No runs are recorded yet."
