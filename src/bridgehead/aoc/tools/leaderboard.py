"""Leaderboard: the tools `speed_leaderboard` and `speed_history`, and the resource."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, Bridge, Context

from ..errors import contract_errors
from ..files import layout
from ..files.entries import Grade, Measure, Name
from ..ranking.board import Order, Row, Skipped, make_filters
from ..ranking.history import Run
from ..workspace import BoardView, Workspace
from . import leaderboard_app
from .leaderboard_app import DayFilter, PhaseFilter
from .records import choose_name

Llm = Annotated[Name, Meta(description="LLM name or alias")]
MeasureFilter = Annotated[
    Measure, Meta(description="solving: until the answer; execution: the program's run")
]


class SpeedLeaderboard(Arguments):
    """Without filters, all runs count."""

    day: DayFilter | UnsetType = UNSET
    phase: PhaseFilter | UnsetType = UNSET
    llm: Llm | UnsetType = UNSET
    llm_name: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    measure: MeasureFilter | UnsetType = UNSET
    grade: Annotated[Grade, Meta(description="One grade only")] | UnsetType = UNSET
    order: Order = "speed"
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    offset: Annotated[int, Meta(ge=0, le=2**31, description="Rows to skip")] = 0


class Leaderboard(Struct, frozen=True):
    """One page of the ranking, times in milliseconds; `total` rows in all."""

    rows: list[Row]
    total: int
    measure: Measure
    grades: Annotated[list[str], Meta(description="What is ranked")]
    method: str
    next_offset: int | None
    skipped: list[Skipped]


class SpeedHistory(Arguments):
    """Without filters, all runs are listed."""

    day: DayFilter | UnsetType = UNSET
    phase: PhaseFilter | UnsetType = UNSET
    llm: Llm | UnsetType = UNSET
    llm_name: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    measure: MeasureFilter | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    older: Annotated[int, Meta(ge=1, le=2**31, description="`older` of the page before")] | UnsetType = UNSET


class History(Struct, frozen=True):
    """One page of runs, the newest first; `total` runs in all."""

    runs: list[Run]
    total: int
    older: Annotated[int | None, Meta(description="Give this back for the next page")]
    skipped: list[Skipped]


def declare(bridge: Bridge[Workspace]) -> None:
    """Declare the tools and the resource."""
    bridge.tool(
        "Rank LLMs by how many times as long as the leader they take per solved answer, with intervals, "
        "runs, solved attempts and wrong answers. Claimed times are listed unranked. One measure at a time.",
        title="Speed leaderboard",
        app=leaderboard_app.URI,
        read_only=True,
        open_world=False,
    )(speed_leaderboard)
    bridge.tool(
        "List single recorded runs, newest first. Answers with a page; its `older` asks for the next one.",
        title="Speed history",
        read_only=True,
        open_world=False,
    )(speed_history)
    bridge.resource(
        layout.LEADERBOARD_URI,
        name="Leaderboard",
        description="The ranking of all models over all recorded runs",
        mime_type="text/plain",
    )(read_leaderboard)


async def speed_leaderboard(args: SpeedLeaderboard, ctx: Context[Workspace]) -> Answer[Leaderboard]:
    """Rank the LLMs."""
    from ..ranking.wording import METHOD

    llm = choose_name(args.llm_name, args.llm)
    filters = make_filters(args.day, args.phase, llm, args.measure, args.order, args.grade)
    view = await ctx.state.board(filters, id(ctx.connection))
    total, end = len(view.rows), args.offset + args.limit
    rows = view.rows[args.offset : end]
    next_offset = end if end < total else None
    page = Leaderboard(
        rows=rows,
        total=total,
        measure=view.board.measure,
        grades=["verified", "measured"] if view.board.grade is None else [view.board.grade],
        method=METHOD,
        next_offset=next_offset,
        skipped=view.skipped,
    )
    return Answer(_board_text(view, rows, filters.llm, filters.day, next_offset), page)


def _board_text(
    view: BoardView, rows: list[Row], llm: str | None, day: int | None, next_offset: int | None
) -> str:
    from ..ranking.wording import board_text, count, no_runs_text, skipped_text

    skipped = skipped_text(view.skipped)
    if not view.rows:
        return no_runs_text(llm, view.known, day, view.days) + skipped
    if not rows:
        return f"There is no row at this offset: the board has {count(len(view.rows), 'row')}."
    return board_text(view.board, rows, len(view.rows), next_offset) + skipped


async def speed_history(args: SpeedHistory, ctx: Context[Workspace]) -> Answer[History]:
    """List single runs."""
    from ..ranking.wording import history_text, no_runs_text, skipped_text

    llm = choose_name(args.llm_name, args.llm)
    filters = make_filters(args.day, args.phase, llm, args.measure)
    view = await ctx.state.history(filters, args.limit, args.older or None, id(ctx.connection))
    page = view.page
    structured = History(page.runs, page.total, page.older, view.skipped)
    text = history_text(page) if page.total else no_runs_text(filters.llm, view.known, filters.day, view.days)
    return Answer(text + skipped_text(view.skipped), structured)


async def read_leaderboard(ctx: Context[Workspace]) -> str:
    """Return the whole board as text."""
    with contract_errors():
        view = await ctx.state.board(make_filters(), id(ctx.connection))
        return _board_text(view, view.rows, None, None, None)
