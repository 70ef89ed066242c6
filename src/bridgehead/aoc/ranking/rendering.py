"""Rendering: a board as a table for the terminal, boards and runs as CSV, JSON or Markdown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from bridgehead.runtime.command_line import write_csv

from ..files.entries import CLAIMED
from ..files.history import Attempt
from .standings import Board, Row
from .wording import dollars, duration, grades, interval, rank, ratio, solved

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = tuple(Row.__struct_fields__)
ATTEMPT_COLUMNS = tuple(Attempt.__struct_fields__)

_HEADINGS = (
    "rank",
    "model",
    "slower",
    "95 %",
    "per solved",
    "median",
    "solved / failed",
    "runs",
    "puzzles",
    "best",
    "wrong",
    "grade",
    "not ranked",
    "mean",
    "stdev",
    "p95",
    "tokens / attempt",
    "cost / attempt",
)
# The order in which columns are left out on a narrow terminal: figures about the spread first. The others
# stay: without its grade, a claimed time looks like any other.
_DROPPED_FIRST = (
    "p95",
    "stdev",
    "mean",
    "wrong",
    "tokens / attempt",
    "cost / attempt",
    "best",
    "puzzles",
    "per solved",
    "runs",
    "not ranked",
    "95 %",
    "solved / failed",
)
_SPECIAL = re.compile(r"[\\`*\[\]<>|&]")
_NAME_WIDTH = 40
"""A longer name is folded before a column is left out for it."""
_GAP = 2


def _cells(board: Board) -> list[dict[str, str]]:
    """Write the rows for people, by heading."""
    nobody_ranked = all(row.rank is None for row in board.rows)
    return [
        {
            "rank": "" if nobody_ranked else rank(row),
            "model": row.llm,
            "slower": "" if nobody_ranked else ratio(row.slower),
            "95 %": interval(row),
            "median": _time(row.median),
            "runs": f"{row.n:,}",
            "puzzles": f"{row.puzzles:,}",
            "best": _time(row.best),
            "per solved": _time(row.per_solved),
            "solved / failed": solved(row),
            "wrong": f"{row.wrong:,}" if row.solved or row.failed else "",
            "grade": grades(row),
            "not ranked": row.unranked if row.unranked and row.unranked != CLAIMED else "",
            "mean": _time(row.mean),
            "stdev": _time(row.stdev),
            "p95": _time(row.p95),
            "tokens / attempt": "" if row.tokens is None else f"{row.tokens:,.0f}",
            "cost / attempt": "" if row.cost_usd is None else dollars(row.cost_usd),
        }
        for row in board.rows
    ]


def _time(milliseconds: float | None) -> str:
    return "" if milliseconds is None else duration(milliseconds)


def table(board: Board, width: int | None) -> Table:
    """Make a table of at most `width` columns of the terminal; None sets no limit.

    Columns that do not fit are left out, the least important first; a model's name is folded, never cut.
    """
    from rich.table import Table
    from rich.text import Text

    rows = _cells(board)
    grid = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    headings = _fitting(rows, width)
    for heading in headings:
        if heading == "model":
            grid.add_column(heading, overflow="fold")
        else:
            grid.add_column(heading, justify="right", no_wrap=True)
    for row, cells in zip(board.rows, rows, strict=True):
        style = "bold green" if row.rank == 1 else "dim" if row.rank is None else None
        grid.add_row(*(Text(cells[heading]) for heading in headings), style=style)
    return grid


def _fitting(rows: list[dict[str, str]], width: int | None) -> list[str]:
    """Choose the columns that are not empty and that fit."""
    chosen = [name for name in _HEADINGS if any(cells[name] for cells in rows)]
    if width is None:
        return chosen
    rows = [{**cells, "model": cells["model"][:_NAME_WIDTH]} for cells in rows]
    for name in _DROPPED_FIRST:
        if table_width(rows, chosen) <= width:
            break
        if name in chosen:
            chosen.remove(name)
    return chosen


def table_width(rows: list[dict[str, str]], headings: Iterable[str]) -> int:
    """Return the width of a table with these columns."""
    from rich.cells import cell_len

    widths = [max(cell_len(text) for text in (name, *(cells[name] for cells in rows))) for name in headings]
    return sum(widths) + _GAP * (len(widths) - 1)


def natural_width(board: Board) -> int:
    """Return the width of the table with every column that is not empty."""
    rows = _cells(board)
    return table_width(rows, _fitting(rows, None))


def csv(items: Iterable[Any], columns: tuple[str, ...] = COLUMNS) -> str:
    """Write rows of a board, or runs, as CSV, numbers in full."""
    return write_csv(columns, ([getattr(item, column) for column in columns] for item in items))


def json(value: object) -> str:
    """Write a board, or runs, as JSON, numbers in full."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def escape(text: str) -> str:
    """Write a text so that Markdown shows it as it is: names and messages are whatever an agent chose."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split("\n")))


def markdown(board: Board) -> str:
    """Write the board as a Markdown table."""
    rows = _cells(board)
    headings = _fitting(rows, None)
    rules = ("---" if heading == "model" else "---:" for heading in headings)
    written = ([escape(cells[heading]) for heading in headings] for cells in rows)
    lines = [headings, rules, *written]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
