"""Leaderboard: the tools `speed_leaderboard` and `speed_history`, and the resource."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, Bridge, Context

from ..errors import contract_errors
from ..files import layout
from ..files.entries import Grade, Measure, Name
from ..files.filters import Order, Skipped, make_filters
from ..files.history import Run
from ..ranking.standings import Row
from ..ranking.wording import (
    METHOD,
    board_text,
    count,
    history_text,
    no_runs,
    notes,
    rows_text,
    skipped_notes,
)
from ..workspace import Workspace
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
    llm_name: Llm | UnsetType = UNSET
    llm: Name | UnsetType = UNSET
    measure: MeasureFilter | UnsetType = UNSET
    grade: Annotated[Grade, Meta(description="One grade only")] | UnsetType = UNSET
    order: Annotated[Order, Meta(description="Default speed")] = "speed"
    limit: Annotated[int, Meta(ge=1, le=100, description="1 to 100; default 20")] = 20
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
    llm_name: Llm | UnsetType = UNSET
    llm: Name | UnsetType = UNSET
    measure: MeasureFilter | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200, description="1 to 200; default 50")] = 50
    older: Annotated[int, Meta(ge=1, le=2**31, description="`older` of the page before")] | UnsetType = UNSET


class History(Struct, frozen=True):
    """One page of runs, the newest first; `total` runs in all."""

    runs: list[Run]
    total: int
    older: Annotated[int | None, Meta(description="Give this back for the next page")]
    skipped: list[Skipped]


def lean_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out the alias `llm`, and bounds that the description or the name states in words.

    Every conversation pays for the list, and some clients drop bounds.
    """
    schema["properties"].pop("llm")
    for name, property_ in schema["properties"].items():
        for bound in ("minimum", "maximum", "minLength"):
            property_.pop(bound, None)
        words = {"day": "1 to 25", "phase": "1 or 2"}
        if name in words:
            property_["description"] = words[name]
    return schema


def declare(bridge: Bridge[Workspace]) -> None:
    """Declare the tools and the resource."""
    bridge.tool(
        "Rank LLMs by their time per solved answer, relative to the leader's, with intervals, "
        "runs, solved attempts and wrong answers. Claimed times are listed unranked. One measure at a time.",
        title="Speed leaderboard",
        input_schema=lean_schema,
        app=leaderboard_app.URI,
        read_only=True,
        open_world=False,
    )(speed_leaderboard)
    bridge.tool(
        "List single recorded runs, newest first. Answers with a page; its `older` asks for the next one.",
        title="Speed history",
        input_schema=lean_schema,
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
    # METHOD has a field of its own in the answer.
    shown_notes = [note for note in notes(view.board) if note != METHOD] if rows else []
    if rows:
        text = "\n".join([rows_text(view.board, rows), *([METHOD] if METHOD in notes(view.board) else [])])
    elif total:
        text = f"There is no row at this offset: the board has {count(total, 'row')}."
    else:
        text, note = no_runs(filters.llm, view.known, filters.day, view.days)
        shown_notes = [] if note is None else [note]
    more = () if next_offset is None else (f"There are {total} rows in all; for more: offset {next_offset}.",)
    return Answer(text, page, notes=(*shown_notes, *skipped_notes(view.skipped)), next=more)


async def speed_history(args: SpeedHistory, ctx: Context[Workspace]) -> Answer[History]:
    """List single runs."""
    llm = choose_name(args.llm_name, args.llm)
    filters = make_filters(args.day, args.phase, llm, args.measure)
    view = await ctx.state.history(filters, args.limit, args.older or None, id(ctx.connection))
    page = view.page
    structured = History(page.runs, page.total, page.older, view.skipped)
    text, note = history_text(page), None
    if not page.total:
        text, note = no_runs(filters.llm, view.known, filters.day, view.days)
    notes = [*([] if note is None else [note]), *skipped_notes(view.skipped)]
    more = (
        () if page.older is None else (f"There are {page.total} runs in all; for more: older {page.older}.",)
    )
    return Answer(text, structured, notes=tuple(notes), next=more)


async def read_leaderboard(ctx: Context[Workspace]) -> str:
    """Return the whole board as text."""
    with contract_errors():
        view = await ctx.state.board(make_filters(), id(ctx.connection))
    text = board_text(view.board, view.rows) if view.rows else "No runs are recorded yet."
    return "\n".join([text, *skipped_notes(view.skipped)])
