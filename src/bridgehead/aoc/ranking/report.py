"""Report: puzzles, records and the ranking for the host's page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bridgehead.runtime.findings import Chart, ChartBar, Fact, Report, ReportTable

from .board import Filters

if TYPE_CHECKING:
    from ..workspace import Workspace

MAX_ROWS = 20
_COLUMNS = ("Rank", "Model", "Slower", "Interval", "Median", "Runs", "Puzzles", "Solved")
_SECOND, _MINUTE = 1000.0, 60_000.0


async def report(workspace: Workspace) -> Report:
    """Count puzzles and records, and rank the models."""
    view = await workspace.board(Filters())
    days = await asyncio.to_thread(workspace.days)
    rows = view.rows[:MAX_ROWS]
    runs = sum(row.n for row in view.rows)
    is_solving = view.board.measure == "solving"
    facts = (
        Fact("Puzzles", f"{len(days)} of {workspace.year}"),
        Fact("Runs", f"{runs:,} on {len(view.days)} day{'' if len(view.days) == 1 else 's'}"),
        Fact("Models", str(len(view.rows))),
        Fact("Fastest", next((row.llm for row in view.rows if row.n), "nobody yet")),
        Fact("Measure", "time to the right answer" if is_solving else "run of the program"),
        Fact("Stored in", "PostgreSQL" if workspace.database is not None else "files"),
        *(Fact("Left out", f"{skipped.file}: {skipped.problem}") for skipped in view.skipped),
    )
    bars = tuple(
        ChartBar(row.llm, row.slower, f"{row.slower:.2f}×") for row in rows if row.slower is not None
    )
    even = "" if view.board.is_even else ", on the puzzles that both ran"
    written = tuple(
        (
            f"{row.rank}{' (few runs)' if row.provisional else ''}",
            row.llm,
            "–" if row.slower is None else f"{row.slower:.2f}×",
            "–" if row.low is None or row.high is None else f"{row.low:.2f}–{row.high:.2f}",
            "–" if row.median is None else format_time(row.median),
            f"{row.n:,}",
            str(row.puzzles),
            "–" if row.solve_rate is None else f"{100 * row.solve_rate:.0f} %",
        )
        for row in rows
    )
    return Report(
        facts=facts,
        charts=(Chart(f"Leaderboard: times slower than the leader{even}", bars),) if bars else (),
        tables=(ReportTable("Leaderboard", _COLUMNS, written, frozenset(_COLUMNS) - {"Model", "Rank"}),),
    )


def format_time(milliseconds: float) -> str:
    """Format a time in milliseconds, seconds or minutes."""
    if milliseconds >= _MINUTE:
        return f"{int(milliseconds // _MINUTE)} min {milliseconds % _MINUTE / _SECOND:.0f} s"
    if milliseconds >= _SECOND:
        return f"{milliseconds / _SECOND:.1f} s"
    return f"{milliseconds:.3g} ms"
