"""Leaderboard app: the page `ui://aoc/leaderboard`, and the tools that only the page calls."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, Bridge, Context

from ..files.entries import Grade, Measure, Name
from ..files.figures import median_of
from ..files.filters import make_filters
from ..files.history import Run
from ..files.layout import FIRST, LAST
from ..workspace import Workspace

URI = "ui://aoc/leaderboard"
MAX_MODELS = 60
"""Limit of rows; with 50 puzzles each, they take about 50 KB."""
MAX_RUNS = 100
DayFilter = Annotated[int, Meta(ge=FIRST, le=LAST)]
PhaseFilter = Annotated[int, Meta(ge=1, le=2)]
"""Without descriptions, unlike `layout.Day`: every conversation pays for the words of a schema."""
_PAGE = os.path.join(os.path.dirname(__file__), "leaderboard.html")  # noqa: PTH118, PTH120 - see bridge.py


class LeaderboardCells(Arguments):
    """Arguments of `leaderboard_cells`."""

    measure: Measure | UnsetType = UNSET
    grade: Grade | UnsetType = UNSET


class LeaderboardRuns(Arguments):
    """Arguments of `leaderboard_runs`."""

    day: DayFilter
    phase: PhaseFilter
    llm: Name
    measure: Measure


class Cell(Struct, frozen=True, array_like=True):
    """One model's runs of one puzzle; times are in milliseconds."""

    puzzle: Annotated[int, Meta(description="Its place in `puzzles`")]
    best: int
    median: float
    n: int


class ModelCells(Struct, frozen=True):
    """One model, with its time on each puzzle that it ran."""

    rank: int | None
    rank_high: int | None
    llm: str
    unranked: str | None
    slower: float | None
    low: float | None
    high: float | None
    n: int
    solved: int
    failed: int
    wrong: int
    solve_rate: float | None
    tokens: float | None
    cost_usd: float | None
    cells: list[Cell]


class Cells(Struct, frozen=True):
    """The whole board, puzzle by puzzle."""

    year: int
    measure: Measure
    grade: Grade | None
    other_runs: int
    puzzles: Annotated[list[list[int]], Meta(description="Day and phase of each")]
    models: list[ModelCells]
    left_out: int
    skipped: list[str]


class CellRuns(Struct, frozen=True):
    """Single runs, the newest first."""

    runs: list[Run]
    total: int


def declare(bridge: Bridge[Workspace]) -> None:
    """Declare the page and its tools."""
    bridge.app(URI, _PAGE, name="Leaderboard", description="Models by puzzle, with their times")
    for title, description, handler in (
        ("Leaderboard cells", "Every model's times by puzzle.", leaderboard_cells),
        ("Leaderboard runs", "One model's runs of a puzzle.", leaderboard_runs),
    ):
        bridge.tool(description, title=title, visible_to="app", read_only=True, open_world=False)(handler)


async def leaderboard_cells(args: LeaderboardCells, ctx: Context[Workspace]) -> Answer[Cells]:
    """Return the board with each model's times."""
    workspace = ctx.state
    view = await workspace.board(make_filters(measure=args.measure, grade=args.grade), id(ctx.connection))
    board = view.board

    def gather() -> Cells:
        times_of = workspace.times_now(make_filters(measure=board.measure), board)
        times = [(row, times_of(row)) for row in view.rows[:MAX_MODELS]]
        puzzles = sorted({puzzle for _, row_times in times for puzzle in row_times})
        places = {puzzle: place for place, puzzle in enumerate(puzzles)}
        models = []
        for row, row_times in times:
            cells = [
                Cell(places[puzzle], ordered[0], median_of(ordered), len(ordered))
                for puzzle, ordered in sorted(row_times.items())
            ]
            shared = {name: getattr(row, name) for name in ModelCells.__struct_fields__ if name != "cells"}
            models.append(ModelCells(**shared, cells=cells))
        return Cells(
            year=workspace.year,
            measure=board.measure,
            grade=board.grade,
            other_runs=board.other_runs,
            puzzles=[list(puzzle) for puzzle in puzzles],
            models=models,
            left_out=max(0, len(view.rows) - MAX_MODELS),
            skipped=[f"{skipped.file}: {skipped.problem}" for skipped in view.skipped],
        )

    # In a thread: 60 models with 50 puzzles each are 3,000 medians.
    page = await workspace.run_in_thread(gather)
    return Answer(f"{len(page.models)} models on {len(page.puzzles)} puzzles.", page)


async def leaderboard_runs(args: LeaderboardRuns, ctx: Context[Workspace]) -> Answer[CellRuns]:
    """Return the runs behind one cell."""
    filters = make_filters(args.day, args.phase, args.llm, args.measure)
    view = await ctx.state.history(filters, MAX_RUNS, None, id(ctx.connection))
    return Answer(f"{view.page.total} runs.", CellRuns(view.page.runs, view.page.total))
