"""Ranking: the tools that compare recorded times, `speed_leaderboard` and `speed_history`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, Bridge, Context

from ..event import Event
from ..files.entries import Name
from ..files.layout import Day, Phase
from ..ranking.board import Row, filters
from ..ranking.history import Run
from ..ranking.rendering import board_text, history_text

Llm = Annotated[Name, Meta(description="LLM name or alias")]


class SpeedLeaderboard(Arguments):
    """Without filters, all runs count."""

    day: Day | UnsetType = UNSET
    phase: Phase | UnsetType = UNSET
    llm: Llm | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    offset: Annotated[int, Meta(ge=0, le=2**31, description="Rows to skip")] = 0


class Leaderboard(Struct, frozen=True):
    """One page of the ranking, times in milliseconds; `total` rows in all."""

    rows: list[Row]
    total: int
    even: Annotated[bool, Meta(description="Whether all LLMs ran the same puzzles")]
    next_offset: int | None


class SpeedHistory(Arguments):
    """Without filters, all runs are listed."""

    day: Day | UnsetType = UNSET
    phase: Phase | UnsetType = UNSET
    llm: Llm | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    older: Annotated[int, Meta(ge=1, le=2**31, description="`older` of the page before")] | UnsetType = UNSET


class History(Struct, frozen=True):
    """One page of runs, the newest first; `total` runs in all."""

    runs: list[Run]
    total: int
    older: Annotated[int | None, Meta(description="Give this back for the next page")]


def declare(bridge: Bridge[Event]) -> None:
    """Let a bridge compare records."""
    bridge.tool(
        "Rank LLMs by their median solving time over all recorded runs, or those of one day, phase or LLM. "
        "Answers with runs, best, median, mean, spread and how many times slower than the best.",
        read_only=True,
        idempotent=True,
        open_world=False,
    )(speed_leaderboard)
    bridge.tool(
        "List single recorded runs, newest first. Answers with a page; its `older` asks for the next one.",
        read_only=True,
        idempotent=True,
        open_world=False,
    )(speed_history)


async def speed_leaderboard(args: SpeedLeaderboard, ctx: Context[Event]) -> Answer[Leaderboard]:
    """Rank the LLMs."""
    board = await ctx.state.board(filters(args.day, args.phase, args.llm))
    total, end = len(board.rows), args.offset + args.limit
    page = board.rows[args.offset : end]
    next_offset = end if end < total else None
    structured = Leaderboard(page, total, board.is_even, next_offset)
    return Answer(board_text(page, total, is_even=board.is_even, next_offset=next_offset), structured)


async def speed_history(args: SpeedHistory, ctx: Context[Event]) -> Answer[History]:
    """List single runs."""
    wanted = filters(args.day, args.phase, args.llm)
    page = await ctx.state.history(wanted, args.limit, args.older or None)
    return Answer(history_text(page), History(page.runs, page.total, page.older))
