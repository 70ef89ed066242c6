"""The aoc bridge: its manifest, and the resources that are open while it serves."""

# ruff: noqa: PTH109, PTH112 - paths are strings here

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bridgehead.mcp import Bridge
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import FarSide, FormField, Kept, Manifest
from bridgehead.runtime.timing import Clock

from .errors import CONTRACT_REVISION, AocDialect
from .files import watching
from .files.layout import find_folders
from .settings import TOOLSETS, AocSettings
from .tools import attempts, leaderboard, leaderboard_app, prompts, puzzles, records
from .workspace import LOCK_SECONDS, Workspace, open_workspace

if TYPE_CHECKING:
    from bridgehead.runtime.findings import Report
    from bridgehead.runtime.stores import migrations

NAME = "aocMCP"
VERSION = "1.0.0"
"""Fixed by the contract; `bridgehead --version` prints the distribution's."""
PREPARE_AFTER_SECONDS = 0.5
# A sentence that names a tool is left out if the tool is not offered.
INSTRUCTIONS = (
    "Advent of Code puzzle texts, and how fast models solve them. To time yourself, call start_attempt "
    "before you read the puzzle: it starts the server's clock and returns the text and your input. Hand "
    "in the answer with finish_attempt, which checks it where the answer is known. Without an attempt, "
    "fetch_instruction returns the text, and the resource aoc://dayNN/input is your input. record_speed "
    "is for times that were taken elsewhere with a real clock: measure 'solving' is from the puzzle to "
    "the right answer, 'execution' is one run of the program. Never estimate or invent a time, and record "
    "only right answers; withdraw_record takes a wrong record back. The site asks people not to use AI "
    "for its leaderboards."
)


def make_bridge(
    settings: AocSettings,
    *,
    clock: Clock | None = None,
    watch_every: float = watching.EVERY_SECONDS,
    lock_wait: float = LOCK_SECONDS,
) -> Bridge[Workspace]:
    """Make the bridge; no file is read before it is served."""

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[Workspace]:
        settings.configure_logs()
        database = None
        if settings.database_url is not None:
            from bridgehead.runtime.stores import postgres  # lazy: PostgreSQL, 14 ms

            database = await postgres.acquire(settings.database_url)
        workspace = open_workspace(settings, clock, database, lock_wait)
        first_look = asyncio.create_task(watching.look(workspace.folders))
        await asyncio.wait([first_look], timeout=watching.FIRST_LOOK_SECONDS)
        watcher = asyncio.create_task(
            watching.watch(bridge, workspace.folders, watch_every, workspace.changes, first_look)
        )

        async def prepare() -> None:
            # Later, so that the imports do not delay the client's first answers.
            await asyncio.sleep(PREPARE_AFTER_SECONDS)
            await asyncio.to_thread(workspace.prepare)
            await asyncio.to_thread(workspace.recorder.take_in_journals)
            try:
                await workspace.record_missing()
            except BridgeError as failure:
                logging.getLogger("bridgehead.aoc").warning("attempts were not checked: %s", failure)

        preparing = asyncio.create_task(prepare())
        try:
            yield workspace
        finally:
            # The database last: finishing the writes under way needs it.
            preparing.cancel()
            watcher.cancel()
            await workspace.close()
            if database is not None:
                from bridgehead.runtime.stores import postgres  # lazy: PostgreSQL, 14 ms

                await postgres.release(database)

    bridge: Bridge[Workspace] = Bridge(
        NAME,
        VERSION,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        dialect=AocDialect(),
        contract_revision=CONTRACT_REVISION,
        # Words for Claude Code's tool search; no model sees them.
        tool_meta={"anthropic/searchHint": "Advent of Code (AoC) puzzles, solving speed of models"},
        # Every conversation carries the tool list; an outline is half as long as the full schemas.
        output_schemas="outline",
        changing={"resources"},
        subscribable=True,
        logging=False,
        # The contract refuses numbers in quotes. Tests check the declarations; doing it here takes up to 5 ms
        # of the start.
        numeric_strings=False,
        checked=False,
    )
    if settings.toolsets == ("solver",):
        attempts.declare(bridge)
        return bridge
    puzzles.declare(bridge, settings.year)
    for noun in (records, leaderboard_app, leaderboard, attempts, prompts):
        noun.declare(bridge)
    TOOLSETS.restrict(bridge, settings.toolsets)
    return bridge


_NO_FILES = "There is no folder with puzzles or records: run `bridgehead aoc init`, or set AOC_DATA_DIR."


def far_side(workspace: Workspace | None) -> FarSide:
    """Report whether there is a folder with puzzles or records."""
    if workspace is None:
        return FarSide(is_up=False, detail="The files have not been read yet.")
    places = workspace.folders
    if workspace.database is not None and not workspace.database.is_up:
        return FarSide(is_up=False, detail=workspace.database.detail)
    if not any(os.path.isdir(folder) for folder in (places.instructions, places.speeds)):
        return FarSide(is_up=False, detail=_NO_FILES)
    count = len(workspace.days())
    detail = f"{count} day{'' if count == 1 else 's'} with instructions."
    if workspace.database is not None:
        detail += f" {workspace.database.detail}"
    return FarSide(is_up=True, detail=detail)


def first_step(settings: AocSettings) -> str:
    """Suggest `init` if there are no puzzles, otherwise a first question to an agent."""
    places = find_folders(settings, os.getcwd())
    if not os.path.isdir(places.instructions):
        return "There are no puzzles yet. Run `bridgehead aoc init` to make a first one."
    return "Ask your agent: “Read day 1, solve it, and record how long it took.”"


async def _report(workspace: Workspace) -> Report:
    from .ranking.report import report  # lazy: the dashboard's report, 3 ms

    return await report(workspace)


def _read_schema() -> migrations.Schema:
    from .database import read_schema  # lazy: PostgreSQL, 14 ms

    return read_schema()


manifest = Manifest(
    package=__package__,
    name="aoc",
    title="Advent of Code",
    summary="Advent of Code puzzles and solve-speed records",
    description="Advent of Code puzzle texts and solve-speed records on disk, with rankings.",
    keywords=("advent-of-code", "puzzles", "leaderboard", "agents", "benchmark"),
    settings=AocSettings,
    make=lambda settings, _metrics: make_bridge(settings),
    far_side=far_side,
    report=_report,
    first_step=first_step,
    schema=_read_schema,
    keeps=(
        Kept("data", "aoc", "puzzles, speed records and attempts"),
        Kept("config", "aoc/session", "the session cookie of your browser"),
        Kept("state", "aoc", "the key that seals grades"),
    ),
    form=(
        FormField("AOC_DATA_DIR", "Data folder", is_required=True),
        FormField("AOC_YEAR", "Year of the event"),
    ),
)
