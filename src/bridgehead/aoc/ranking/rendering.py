"""Rendering: boards and histories as text for a model, a terminal table, CSV, JSON or Markdown. Pure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import msgspec

from .board import Board, Row
from .history import Page

if TYPE_CHECKING:
    from rich.table import Table

NO_RUNS = "No runs are recorded for this yet. Record one with record_speed."
UNEVEN = "Not every LLM ran the same puzzles: filter by day and phase to compare like with like."
COLUMNS = ("rank", "llm", "puzzles", "n", "best", "median", "mean", "stdev", "p95", "slower")


def ms(value: float) -> str:
    """Write a time in milliseconds, with a fraction only where it says something."""
    return f"{value:.1f}ms" if value < 100 and value % 1 else f"{value:.0f}ms"  # noqa: PLR2004 - three digits


def times(ratio: float | None) -> str:
    """Write how many times slower something is than the best."""
    return "–" if ratio is None else f"{ratio:.2f}×"


def board_text(rows: list[Row], total: int, *, is_even: bool, next_offset: int | None) -> str:
    """Write one page of a board."""
    if not total:
        return NO_RUNS
    lines = [_row(row) for row in rows]
    if not is_even:
        lines.append(UNEVEN)
    if next_offset is not None:
        lines.append(f"{total} in all; for more: offset {next_offset}")
    return "\n".join(lines) or f"There are only {total} rows."


def _row(row: Row) -> str:
    spread = "" if row.stdev is None else f", stdev {ms(row.stdev)}"
    slowest = "" if row.p95 is None else f", p95 {ms(row.p95)}"
    return (
        f"{row.rank}. {row.llm}: median {ms(row.median)}, {times(row.slower)} the best "
        f"(n {row.n} on {row.puzzles}, best {ms(row.best)}, mean {ms(row.mean)}{spread}{slowest})"
    )


def history_text(page: Page) -> str:
    """Write one page of a history."""
    if not page.total:
        return NO_RUNS
    lines = [
        f"{run.timestamp} Day {run.day} Phase {run.phase} {run.llm}: {run.speed_ms}ms" for run in page.runs
    ]
    if page.older is not None:
        lines.append(f"{page.total} in all; for the next page: older {page.older}")
    return "\n".join(lines)


def _shown(row: Row) -> list[str]:
    """Write a row for people."""
    numbers = (row.best, row.median, row.mean, row.stdev, row.p95)
    return [
        str(row.rank),
        row.llm,
        str(row.puzzles),
        str(row.n),
        *("" if number is None else f"{number:,.0f}" for number in numbers),
        times(row.slower),
    ]


def table(board: Board) -> Table:
    """Make the table that a terminal shows."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption="times in ms", caption_justify="left")
    for column in COLUMNS:
        if column == "llm":
            made.add_column(column, overflow="fold", min_width=8)
        else:
            made.add_column(column, justify="right", no_wrap=True)
    for row in board.rows:
        made.add_row(*(Text(cell) for cell in _shown(row)), style="bold green" if row.rank == 1 else None)
    return made


def csv(board: Board) -> str:
    """Write the board as CSV, numbers in full."""
    from csv import writer

    out = io.StringIO()
    lines = writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows([getattr(row, column) for column in COLUMNS] for row in board.rows)
    return out.getvalue()


def json(board: Board) -> str:
    """Write the board as JSON, numbers in full."""
    return msgspec.json.format(msgspec.json.encode(board), indent=2).decode() + "\n"


def markdown(board: Board) -> str:
    """Write the board as a Markdown table, times in milliseconds."""
    rules = ("---" if column == "llm" else "---:" for column in COLUMNS)
    rows = [COLUMNS, rules, *(map(_cell, _shown(row)) for row in board.rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")
