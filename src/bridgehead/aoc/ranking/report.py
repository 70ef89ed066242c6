"""Report: puzzles, records and the ranking for the host's page."""

from __future__ import annotations

import asyncio

from bridgehead.runtime.findings import Chart, ChartBar, Fact, Report, ReportTable

from ..files.filters import Filters
from ..workspace import Workspace
from .wording import METHOD, board_title, duration, interval, rank, ratio, solved

MAX_ROWS = 20
_COLUMNS = (
    "Rank",
    "Model",
    "Slower",
    "Interval",
    "Median",
    "Runs",
    "Puzzles",
    "Solved / failed",
    "Wrong answers",
)


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
        Fact("Models", str(len(view.known))),
        Fact("Leader", next((row.llm for row in view.rows if row.rank == 1), "nobody yet")),
        Fact("Measure", "time to the right answer" if is_solving else "run of the program"),
        Fact("Stored in", "PostgreSQL" if workspace.database is not None else "files"),
        *(Fact("Left out", f"{skipped.file}: {skipped.problem}") for skipped in view.skipped),
    )
    bars = tuple(ChartBar(row.llm, row.slower, ratio(row.slower)) for row in rows if row.slower is not None)
    written = tuple(
        (
            rank(row) if row.unranked is None else row.unranked,
            row.llm,
            ratio(row.slower),
            interval(row) or "–",
            "–" if row.median is None else duration(row.median),
            f"{row.n:,}",
            str(row.puzzles),
            solved(row) or "–",
            f"{row.wrong:,}" if row.solved or row.failed else "–",
        )
        for row in rows
    )
    charts = (Chart(board_title(view.board), bars, note=METHOD),) if bars else ()
    numbers = frozenset(_COLUMNS) - {"Model", "Rank"}
    return Report(
        facts=facts, charts=charts, tables=(ReportTable("Leaderboard", _COLUMNS, written, numbers),)
    )
