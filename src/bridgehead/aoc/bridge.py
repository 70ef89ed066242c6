"""The aoc bridge, put together: its tools, resources and prompts, and what it holds open while it serves."""

# ruff: noqa: PTH109 - pathlib would delay the server's first answer

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridgehead.mcp import Bridge
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.clock import Clock, SystemClock

from .errors import AocDialect
from .event import Event
from .files import watching
from .files.layout import find_folders
from .settings import AocSettings
from .tools import leaderboard, prompts, puzzles, records

NAME = "aocMCP"
VERSION = "1.0.0"
"""As the contract has it; the distribution's own version is `bridgehead --version`."""
PREPARE_AFTER_SECONDS = 0.5


def open_event(settings: AocSettings, clock: Clock | None = None) -> Event:
    """Open the files that the settings name."""
    found = find_folders(settings, os.getcwd())
    return Event(settings.year, found, settings.lock_wait_ms / 1000, clock or SystemClock())


def make_bridge(
    settings: AocSettings, *, clock: Clock | None = None, watch_every: float = watching.EVERY_SECONDS
) -> Bridge[Event]:
    """Make the bridge; nothing is read before it is served."""

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[Event]:
        settings.configure_logs()
        event = open_event(settings, clock)
        watcher = asyncio.create_task(watching.watch(bridge, event.folders.instructions, watch_every))
        preparing = asyncio.create_task(_prepared(event))
        try:
            yield event
        finally:
            preparing.cancel()
            watcher.cancel()
            await event.close()

    bridge: Bridge[Event] = Bridge(
        NAME,
        VERSION,
        lifespan=lifespan,
        dialect=AocDialect(),
        changing={"resources"},
        subscribable=True,
        logging=False,
    )
    puzzles.declare(bridge, settings.year)
    records.declare(bridge)
    leaderboard.declare(bridge)
    prompts.declare(bridge)
    return bridge


async def _prepared(event: Event) -> None:
    """Load what the first record and the first ranking need, once the client has what it asked for first."""
    await asyncio.sleep(PREPARE_AFTER_SECONDS)
    await asyncio.to_thread(event.prepare)
