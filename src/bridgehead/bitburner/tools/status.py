"""Status: the tool that tells how things stand with the game, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from bridgehead.mcp import Answer, Context, NoArguments
from bridgehead.runtime.errors import BridgeError

from ..game import timestamps
from ..session import Session
from .declaring import ToolDeclarer

if TYPE_CHECKING:
    from ..changes.differences import Difference

State = Literal["connected", "waiting", "blocked"]


class DifferingFile(Struct):
    """A file that does not hold what was last written to it."""

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
        "Whether a game is connected, since when, of which generation, and what the player has to do if not.",
    )(connection_status)


async def connection_status(_: NoArguments, ctx: Context[Session]) -> Answer[ConnectionStatus]:
    """Tell how things stand."""
    from ..changes.differences import describe_differences

    status = await _describe(ctx.state)
    found = await _list_differences(ctx.state)
    status.differences = [DifferingFile(one.filename, one.server, one.state) for one in found]
    ctx.state.take_notice()  # said below
    told = describe_differences(found)
    return Answer(_word(status) + (f"\n{told}" if told else ""), status)


async def _list_differences(session: Session) -> list[Difference]:
    try:
        return await session.writer.list_differences()
    except BridgeError:
        return []  # the game has just gone; the state says so


async def _describe(session: Session) -> ConnectionStatus:
    connection = session.connection
    link = connection.link
    generation = None if link is None else await _generation(session)
    return ConnectionStatus(
        state="connected" if link is not None else "blocked" if connection.problem else "waiting",
        role=connection.role,
        address=connection.address,
        since=None if connection.since is None else timestamps.format_utc(connection.since),
        game=connection.game if link is not None else None,
        generation=generation,
        next_step="Nothing; go ahead." if link is not None else connection.describe_next_step(),
        read_only=session.settings.read_only,
        pending=0 if link is None else link.pending,
        guests=session.relay.guests,
        timeouts=int(sum(connection.counters.timeouts.values.values())),
        reconnects=int(sum(connection.counters.reconnects.values.values())),
        ignored_replies=int(sum(connection.counters.ignored.values.values())),
    )


async def _generation(session: Session) -> str:
    try:
        return await session.remote.detect_generation()
    except BridgeError as error:
        return f"unknown: {error.message}"


_ROLES = {
    "owner": "This process listens on {address}; the game dials it.",
    "guest": "Another bridge of yours listens on {address}; this process shares its game.",
    "dialler": "This process dials {address}.",
}


def _word(status: ConnectionStatus) -> str:
    """Give the status in a few lines."""
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
