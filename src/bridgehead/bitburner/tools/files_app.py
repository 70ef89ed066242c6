"""Files app: the page `ui://bitburner/files`, the tool that shows it, and the tools that only the page calls.

The page only reads: changes are up to the agent and its confirmations. Its tools never consume the note on
changed files, which is meant for the agent.
"""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Literal

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context, NoArguments

from ..errors import UnsupportedByGame
from ..game import paths, timestamps
from ..game.remote import Remote
from ..session import Session
from .declaring import Server, ToolDeclarer
from .scripts import measure_cost
from .status import State

URI = "ui://bitburner/files"
MAX_COSTS = 50
_PAGE = os.path.join(os.path.dirname(__file__), "files.html")  # noqa: PTH118, PTH120 - pathlib loads slowly


class BrowseFiles(Arguments):
    """Input of browse_files."""

    server: Server = paths.HOME
    filename: Annotated[str, Meta(description="Opened in the page")] | None = None


class KnownServer(Struct):
    """A server and the player's access to it."""

    name: str
    group: Literal["purchased", "rooted", "unrooted"]


class Overview(Struct):
    """Output of files_overview."""

    state: State
    since: str | None
    next_step: str
    servers: list[KnownServer] = []


class OfServer(Arguments):
    """Input of files_on_server."""

    server: str


class ListedFile(Struct, omit_defaults=True):
    """A file, and how it differs from the content last written."""

    name: str
    size: int
    modified: str = ""
    differs: str = ""


class ListedFiles(Struct):
    """Output of files_on_server."""

    server: str
    files: list[ListedFile]


class OfFiles(Arguments):
    """Input of files_ram."""

    server: str
    filenames: Annotated[list[str], Meta(min_length=1, max_length=MAX_COSTS)]


class Costs(Struct):
    """Output of files_ram: GB by name; null for files that cannot be run."""

    ram_gb: dict[str, float | None]


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.bridge.app(
        URI, _PAGE, name="Files", description="Servers and files of the game, with sizes and RAM"
    )
    tools.bridge.tool(
        "Show the player the servers and files of the game in a page, with sizes, RAM and what changed.",
        title="Browse files",
        read_only=True,
        open_world=False,
        app=URI,
        visible_to="app_hosts",
    )(browse_files)
    for description, handler in (
        ("Whether a game is connected, and its servers.", files_overview),
        ("The files of a server with their sizes.", files_on_server),
        ("RAM costs of up to 50 files.", files_ram),
    ):
        tools.bridge.tool(description, read_only=True, open_world=False, visible_to="app")(handler)


async def browse_files(args: BrowseFiles, ctx: Context[Session]) -> str:
    """Return one sentence about the page; the page loads its own data."""
    on = paths.validate_server(args.server)
    names = await ctx.state.remote.list_names(on)
    return f"The page shows the files of the game; {on} has {len(names)}."


async def files_overview(_: NoArguments, ctx: Context[Session]) -> Answer[Overview]:
    """Report whether a game is connected, without waiting for one."""
    connection = ctx.state.connection
    since = None if connection.since is None else timestamps.format_utc(connection.since)
    if connection.link is None:
        state: State = "blocked" if connection.problem else "waiting"
        return Answer("No game is connected.", Overview(state, since, connection.describe_next_step()))
    try:
        servers = [
            KnownServer(
                server.hostname,
                "purchased"
                if server.purchasedByPlayer
                else "rooted"
                if server.hasAdminRights
                else "unrooted",
            )
            for server in await ctx.state.remote.list_servers()
        ]
    except UnsupportedByGame:  # before 2.6
        servers = [KnownServer(paths.HOME, "purchased")]
    return Answer(f"{len(servers)} servers.", Overview("connected", since, "", servers))


async def files_on_server(args: OfServer, ctx: Context[Session]) -> Answer[ListedFiles]:
    """List the files of a server, with their differences from the content last written."""
    session, on = ctx.state, paths.validate_server(args.server)
    files = await _list_files(session.remote, on)
    names = {file.name for file in files}
    for difference in await session.differences.check_all(session.remote):
        if difference.server != on:
            continue
        # A file that the game has lost is listed too.
        if difference.filename not in names:
            files.append(ListedFile(difference.filename, 0))
        for file in files:
            if file.name == difference.filename:
                file.differs = difference.state
    return Answer(f"{len(files)} files.", ListedFiles(on, files))


async def _list_files(remote: Remote, server: str) -> list[ListedFile]:
    """List files with sizes; older games do not report sizes, so their files are read."""
    try:
        metadata = await remote.list_metadata(server)
    except UnsupportedByGame:
        metadata = []
    if metadata and all(file.size is not None for file in metadata):
        return [
            ListedFile(file.filename, file.size or 0, timestamps.format_utc(file.mtime / 1000))
            for file in metadata
        ]
    times = {file.filename: timestamps.format_utc(file.mtime / 1000) for file in metadata}
    files = await remote.read_all(server)
    listed = [
        ListedFile(file.filename, len(file.content.encode(errors="replace")), times.get(file.filename, ""))
        for file in files
    ]
    others = set(await remote.list_names(server)) - {file.filename for file in files}
    return [*listed, *(ListedFile(name, 0) for name in sorted(others))]


async def files_ram(args: OfFiles, ctx: Context[Session]) -> Answer[Costs]:
    """Calculate the RAM costs of scripts; other files have none."""
    on = paths.validate_server(args.server)
    names = [paths.validate_filename(name) for name in args.filenames]
    measured = await asyncio.gather(*(measure_cost(ctx.state, name, on) for name in names))
    costs = dict(zip(args.filenames, (cost for cost, _ in measured), strict=True))
    return Answer(f"{len(costs)} costs.", Costs(costs))
