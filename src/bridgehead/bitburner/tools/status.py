"""Status: the tool that reports the connection to the game and the next step."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from msgspec import Struct

from bridgehead.mcp import Answer, Context, NoArguments
from bridgehead.runtime.errors import BridgeError

from ..changes.differences import Difference, describe_differences
from ..game import timestamps
from ..session import Session
from .declaring import ToolDeclarer

State = Literal["connected", "waiting", "blocked"]


class DifferingFile(Struct):
    """A file that does not hold the content last written to it."""

    filename: str
    server: str
    state: str


class ConnectionStatus(Struct):
    """Output of connection_status."""

    state: State
    role: str
    address: str
    since: str | None
    game: str | None
    generation: str | None
    next_step: str
    read_only: bool
    pending: int
    guests: int
    timeouts: int
    reconnects: int
    ignored_replies: int
    differences: list[DifferingFile] = []


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "Connection status",
        "Whether a Bitburner game is connected, since when, its generation, and what the player has to do "
        "if not.",
    )(connection_status)


async def connection_status(_: NoArguments, ctx: Context[Session]) -> Answer[ConnectionStatus]:
    """Report the connection, and files that differ from the content last written."""
    session = ctx.state
    connection = session.connection
    if connection.link is None and not connection.problem:  # a game may be dialling, as for other tools
        await connection.wait_for_game(session.settings.connect_wait_ms / 1000)
    link, counters = connection.link, connection.counters
    generation = None
    if link is not None:
        try:
            generation = await session.remote.detect_generation()
        except BridgeError as error:
            generation = f"unknown: {error.message}"
    status = ConnectionStatus(
        state="connected" if link is not None else "blocked" if connection.problem else "waiting",
        role=connection.role,
        address=connection.address,
        since=None if connection.since is None else timestamps.format_utc(connection.since),
        game=connection.game if link is not None else None,
        generation=generation,
        next_step="Nothing; go ahead." if link is not None else connection.describe_next_step(),
        read_only=session.settings.read_only,
        pending=0 if link is None else link.pending,
        guests=len(session.relay.guests),
        timeouts=int(sum(counters.timeouts.values.values())),
        reconnects=int(sum(counters.reconnects.values.values())),
        ignored_replies=int(sum(counters.ignored.values.values())),
    )
    differences: list[Difference] = []
    with suppress(BridgeError):  # the game has just disconnected, which the next call reports
        differences = await session.writer.list_differences()
    status.differences = [
        DifferingFile(difference.filename, difference.server, difference.state) for difference in differences
    ]
    session.forget_differences()  # reported in this answer
    status_notes = []
    if note := describe_differences(differences):
        status_notes.append(note)
        # No tool names here: restore_file may not be offered. If it is, the note names it.
        step = "Bring back what the game has lost"
        if all(difference.state == "back" for difference in differences):
            step = "Delete the files again"
        status.next_step = f"{step}, or read the files as they are now."
    if session.dropped_versions:
        status_notes.append(
            f"The store of versions is full: {session.dropped_versions} of the oldest were dropped for new "
            "ones. BITBURNER_BACKUP_MAX_FILES sets its size."
        )
    return Answer(_describe_status(status), status, notes=tuple(status_notes))


_ROLES = {
    "owner": "This process listens on {address}; the game dials it.",
    "guest": "Another bridge of yours listens on {address}; this process shares its game.",
    "dialler": "This process dials {address}.",
}


def _describe_status(status: ConnectionStatus) -> str:
    """Describe the status in a few lines."""
    head = {
        "connected": f"Connected since {status.since} to a game of generation {status.generation}, "
        f"from {status.game}.",
        "waiting": "No game is connected.",
        "blocked": "No game can connect.",
    }[status.state]
    lines = [head, _ROLES[status.role].format(address=status.address), f"Next: {status.next_step}"]
    if status.read_only:
        lines.append("Read-only: tools that write are not offered.")
    lines.append(
        f"So far: {status.reconnects} reconnects, {status.timeouts} timeouts, {status.ignored_replies} "
        f"ignored replies; {status.pending} exchanges pending, {status.guests} guests."
    )
    return "\n".join(lines)
