"""Attempts: the tools that time a model from puzzle to right answer, by the server's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, Bridge, Context
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.errors import InvalidArgument, NotFound

from ..files.layout import Day, Phase
from ..files.names import clean_name
from ..workspace import Workspace
from .records import choose_name

if TYPE_CHECKING:
    from ..files.instructions import Verdict

_WRONG = {
    "wrong": "Wrong.",
    "too_high": "Wrong: too high.",
    "too_low": "Wrong: too low.",
}


class StartAttempt(Arguments):
    """Arguments of `start_attempt`."""

    day: Day
    phase: Phase
    llm_name: str | UnsetType = UNSET
    llm: str | UnsetType = UNSET


START_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "day": {"type": "integer", "minimum": 1, "maximum": 25, "description": "Day number"},
        "phase": {"type": "integer", "minimum": 1, "maximum": 2, "description": "Phase (1 or 2)"},
        "llm_name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "LLM name"},
    },
    "required": ["day", "phase", "llm_name"],
    "additionalProperties": False,
}


class StartedAttempt(Struct, frozen=True):
    """An attempt under way."""

    attempt: str
    day: int
    phase: int
    llm: str
    started: str


class FinishAttempt(Arguments):
    """Arguments of `finish_attempt`."""

    attempt: Annotated[str, Meta(min_length=1, max_length=64, description="From start_attempt")]
    answer: (
        Annotated[str, Meta(min_length=1, max_length=4000, description="What the program printed")]
        | UnsetType
    ) = UNSET
    give_up: Annotated[bool, Meta(description="End without an answer; counts as not solved")] = False
    tokens: Annotated[int, Meta(ge=0, description="Tokens used, if known")] | UnsetType = UNSET
    cost_usd: Annotated[float, Meta(ge=0, description="Cost in US dollars, if known")] | UnsetType = UNSET


GRACE_SECONDS = 2.0
"""How long a call may take before a client that supports tasks gets a task instead."""


class FinishedAttempt(Struct, frozen=True):
    """After `wrong` the clock runs on; the other outcomes end the attempt."""

    attempt: str
    outcome: Literal["solved", "wrong", "unchecked", "failed"]
    verdict: Literal["right", "wrong", "too_high", "too_low", "unknown", "none"]
    speed_ms: int
    recorded: bool


def declare(bridge: Bridge[Workspace]) -> None:
    """Declare the tools."""
    bridge.tool(
        "Start the server's clock for solving one phase of a day. Call it before you read the puzzle.",
        read_only=False,
        destructive=False,
        idempotent=False,
        open_world=False,
        input_schema=START_SCHEMA,
        task="optional",
        task_grace_seconds=GRACE_SECONDS,
    )(start_attempt)
    bridge.tool(
        "Hand in the answer of an attempt. A right one stops the clock and records the solving time; after a "
        "wrong one the clock runs on. Without a known answer the time is recorded unchecked.",
        read_only=False,
        destructive=False,
        idempotent=False,
        open_world=False,
        task="optional",
        task_grace_seconds=GRACE_SECONDS,
    )(finish_attempt)


async def start_attempt(args: StartAttempt, ctx: Context[Workspace]) -> Answer[StartedAttempt]:
    """Begin an attempt."""
    name = choose_name(args.llm_name, args.llm)
    if isinstance(name, UnsetType):
        raise InvalidArgument("llm_name is missing.", next_step="Give the name that you are known by.")
    llm = clean_name(name)
    if args.day not in ctx.state.days():
        days = ", ".join(map(str, sorted(ctx.state.days()))) or "none"
        raise NotFound(f"Day {args.day} has no puzzle here.", next_step=f"Days with a puzzle: {days}.")
    step = await ctx.state.run_in_thread(ctx.state.stopwatch.start, args.day, args.phase, llm)
    return Answer(
        f"The clock runs for {llm} on day {args.day} phase {args.phase}.",
        StartedAttempt(step.attempt, args.day, args.phase, llm, step.timestamp),
        next=(f"Hand in the answer with finish_attempt(attempt={step.attempt!r}, answer=...).",),
    )


async def finish_attempt(args: FinishAttempt, ctx: Context[Workspace]) -> Answer[FinishedAttempt]:
    """Check an answer; end the attempt unless the answer was wrong."""
    from ..files.recorder import NewRun

    if (args.answer is UNSET) != args.give_up:
        raise InvalidArgument(
            "Give either an answer or give_up.", next_step="give_up ends the attempt unsolved."
        )
    workspace = ctx.state
    day, started, milliseconds = await workspace.run_in_thread(workspace.stopwatch.look_up, args.attempt)
    verdict: Verdict | Literal["none"] = "none"
    if not isinstance(args.answer, UnsetType):
        verdict = await asyncio.to_thread(workspace.check_answer, day, started.phase, args.answer)
    outcome: Literal["solved", "wrong", "unchecked", "failed"]
    if verdict == "none":
        outcome = "failed"
    elif verdict in _WRONG:
        outcome = "wrong"
    else:
        outcome = "solved" if verdict == "right" else "unchecked"
    tokens = None if isinstance(args.tokens, UnsetType) else args.tokens
    cost = None if isinstance(args.cost_usd, UnsetType) else args.cost_usd
    is_recorded = outcome in {"solved", "unchecked"}
    # The record first: after a failure in between, an attempt must not count as solved without its time.
    if is_recorded:
        run = NewRun(day, started.phase, started.llm, milliseconds, "solving", "measured")
        await workspace.recorder.record(run, id(ctx.connection))
    await workspace.run_in_thread(workspace.stopwatch.note, day, started, outcome, milliseconds, tokens, cost)
    structured = FinishedAttempt(args.attempt, outcome, verdict, milliseconds, is_recorded)
    what = f"{started.llm} Day {day} Phase {started.phase}"
    if outcome == "wrong":
        text = f"{_WRONG[verdict]} The clock runs on; correct it and hand in again."
    elif outcome == "failed":
        text = f"Not solved: {what}, after {milliseconds}ms."
    elif outcome == "solved":
        text = f"Right. Recorded {what}: {milliseconds}ms, measured."
    else:
        text = f"Recorded {what}: {milliseconds}ms, measured. The answer was not checked: none is known here."
    return Answer(text, structured)
