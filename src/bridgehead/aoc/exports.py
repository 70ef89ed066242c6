"""Exports: a whole board as a table for the terminal, as CSV, JSON or Markdown. Pure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import msgspec

from .leaderboard import Board, Row
from .wording import times

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("rank", "llm", "puzzles", "n", "best", "median", "mean", "stdev", "p95", "slower")


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
