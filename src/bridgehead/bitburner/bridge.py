"""The bridge: puts settings, tools, resources and prompts together. Nothing runs until it is served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridgehead import __version__
from bridgehead.mcp import Bridge
from bridgehead.runtime.clock import Clock, SystemClock
from bridgehead.runtime.metrics import Metrics

from .errors import BitburnerDialect
from .game import paths
from .session import Session, open_session
from .settings import BitburnerSettings
from .tools import (
    definitions,
    files,
    prompts,
    ram,
    resources,
    restores,
    saves,
    search,
    servers,
    status,
    writes,
)
from .tools.declaring import ToolDeclarer

INSTRUCTIONS = """\
Files of a running game of Bitburner: list, read, search, write, edit, delete, restore, and RAM costs. \
Nothing here runs a script. If a call says that the game is not connected, show the user the steps it gives; \
connection_status tells how things stand. Look API functions up with search_definitions. A file that is \
written over or deleted can be brought back with restore_file."""

_NOUNS = (status, files, search, writes, restores, ram, definitions, servers, saves)


def make_bridge(
    settings: BitburnerSettings, *, metrics: Metrics | None = None, clock: Clock | None = None
) -> Bridge[Session]:
    """Make the bridge; the port opens when it is served."""
    counted = metrics or Metrics()
    calls = counted.counter("tool_calls_total", "Calls of a tool.", "tool")
    errors = counted.counter("tool_errors_total", "Calls of a tool that failed.", "tool")

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[Session]:
        async with open_session(settings, counted, clock or SystemClock()) as session:
            session.announce = announce
            yield session

    def announce(server: str, filename: str, is_listed_anew: bool) -> None:  # noqa: FBT001 - one caller
        bridge.changed.resource(paths.make_uri(server, filename))
        if is_listed_anew and server == paths.HOME:
            bridge.changed.resources()

    bridge: Bridge[Session] = Bridge(
        "bitburner",
        __version__,
        title="Bitburner",
        description="The files of a running game of Bitburner",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        dialect=BitburnerDialect(calls, errors),
        changing={"resources"},
        subscribable=True,
    )
    tools = ToolDeclarer(bridge, calls, errors, read_only=settings.read_only)
    for noun in _NOUNS:
        noun.declare(tools)
    resources.declare(bridge)
    prompts.declare(bridge)
    return bridge
