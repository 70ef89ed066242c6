"""Diffusion app: the page `ui://mercury/diffusion`, and its tools to watch and stop an answer.

The page starts nothing by itself. The user starts `mercury_chat_stream` from it, called like any tool, so
limits, budgets, the audit and the rights of tokens apply as usual.
"""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Bridge, Context

from ..calling.call import identify_account
from ..calling.runs import Run, Status
from ..calling.service import Service
from ..completion import Metadata

URI = "ui://mercury/diffusion"
STATE = "mercury_diffusion_state"
CANCEL = "mercury_diffusion_cancel"
WAIT_SECONDS = 1.0
_PAGE = os.path.join(os.path.dirname(__file__), "diffusion.html")  # noqa: PTH118, PTH120 - pathlib loads slowly


class WatchRun(Arguments):
    """Identifies a run, and the states that the page has already."""

    run: str | None = None
    about: Annotated[str, Meta(description="The message that the run answers")] | None = None
    after: Annotated[int, Meta(ge=0, description="States that are known; waits for more")] = 0
    all: Annotated[bool, Meta(description="All states that are kept, not just the last")] = False


class StopRun(Arguments):
    """Identifies a run."""

    run: str


class RunState(Struct, omit_defaults=True):
    """The state of a run."""

    run: str
    status: Status | None
    count: int = 0
    elapsed_ms: int = 0
    states: Annotated[list[list[int | str]], Meta(description="Milliseconds and text of each")] = []
    problem: str = ""
    metadata: Metadata | None = None


def declare(bridge: Bridge[Service]) -> None:
    """Declare the page and its tools."""
    bridge.app(URI, _PAGE, name="Diffusion", description="An answer as it is refined, state by state")
    bridge.tool(
        "How an answer is being refined.",
        name=STATE,
        title="Mercury diffusion state",
        visible_to="app",
        read_only=True,
        open_world=False,
    )(watch)
    bridge.tool(
        "Stops an answer, and the request at the API.",
        name=CANCEL,
        title="Mercury diffusion cancel",
        visible_to="app",
        read_only=True,
        open_world=False,
    )(stop)


async def watch(args: WatchRun, ctx: Context[Service]) -> Answer[RunState]:
    """Return the state of a run as soon as it changes, or after a second."""
    run = ctx.state.runs.find(identify_account(ctx), args.run, args.about)
    if run is None:
        return Answer("There is no such run.", RunState("", None))
    await run.wait_for_news(args.after, WAIT_SECONDS)
    return _describe(run, run.states if args.all else run.states[-1:])


async def stop(args: StopRun, ctx: Context[Service]) -> Answer[RunState]:
    """Stop a run."""
    run = ctx.state.runs.find(identify_account(ctx), args.run, None)
    if run is None:
        return Answer("There is no such run.", RunState("", None))
    run.cancel()
    return _describe(run, run.states[-1:])


def _describe(run: Run, states: list[tuple[int, str]]) -> Answer[RunState]:
    metadata = None if run.completion is None else run.completion.metadata
    listed: list[list[int | str]] = [[at, text] for at, text in states]
    state = RunState(run.name, run.status, run.count, run.elapsed_ms, listed, run.problem, metadata)
    return Answer(f"{run.count} states, {run.status}.", state)
