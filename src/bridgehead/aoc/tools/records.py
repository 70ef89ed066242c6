"""Recording: the tool that keeps a solving time."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Bridge, Context

from ..event import Event
from ..files.entries import Milliseconds, clean_name
from ..files.layout import Day, Phase


class RecordSpeed(Arguments):
    """What `record_speed` takes."""

    day: Day
    phase: Phase
    llm_name: str
    speed_ms: Milliseconds


RECORD_SCHEMA = {
    "type": "object",
    "properties": {
        "day": {"type": "integer", "description": "Day number"},
        "phase": {"type": "integer", "description": "Phase (1 or 2)"},
        "llm_name": {"type": "string", "description": "LLM name"},
        "speed_ms": {"type": "integer", "description": "Solving time in milliseconds"},
    },
    "required": ["day", "phase", "llm_name", "speed_ms"],
}
"""As the contract has it, for clients that know it by heart; `RecordSpeed` is what is held to."""


class RecordedSpeed(Struct, frozen=True):
    """A record on disk, and what all runs of this LLM on this day and phase come to, in milliseconds."""

    day: int
    phase: int
    llm: str
    speed_ms: int
    timestamp: str
    n: int
    best: int
    median: float
    mean: float
    stdev: Annotated[float | None, Meta(description="null for a single run")]


def declare(bridge: Bridge[Event]) -> None:
    """Let a bridge take records."""
    bridge.tool(
        "Record the solving speed for an LLM on a specific day and phase",
        read_only=False,
        destructive=False,
        idempotent=False,
        open_world=False,
        input_schema=RECORD_SCHEMA,
    )(record_speed)


async def record_speed(args: RecordSpeed, ctx: Context[Event]) -> Answer[RecordedSpeed]:
    """Record a time, and answer when it is on the disk."""
    llm = clean_name(args.llm_name)
    entry, figures, average = await ctx.state.record(args.day, args.phase, llm, args.speed_ms)
    text = f"Recorded {llm} Day {args.day} Phase {args.phase}: {args.speed_ms}ms (avg: {average}ms)"
    structured = RecordedSpeed(
        args.day,
        args.phase,
        llm,
        args.speed_ms,
        entry.timestamp,
        figures.n,
        figures.best,
        figures.median,
        figures.mean,
        figures.stdev,
    )
    return Answer(text, structured)
