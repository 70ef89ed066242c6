"""Resources: the game's files as `bitburner://server/path`, with completions for both."""

from __future__ import annotations

from bridgehead.mcp import Bridge, Context, ProtocolError, ResourceItem, TextResource
from bridgehead.runtime.errors import BridgeError, InvalidArgument

from ..changes.history import digest
from ..errors import RemoteFailure
from ..game import paths
from ..session import Session
from .files import record_seen

TEMPLATE = "bitburner://{server}/{+path}"


def declare(bridge: Bridge[Session]) -> None:
    """Declare the files of the game as resources."""
    bridge.template(
        TEMPLATE,
        name="file",
        title="File in the game",
        description="A file on a server of the game, such as bitburner://home/scripts/hack.js",
    )(read)
    bridge.resource_list(home_files)
    bridge.complete_template(TEMPLATE, "server")(complete_server)
    bridge.complete_template(TEMPLATE, "path")(complete_path)


async def read(variables: dict[str, str], ctx: Context[Session]) -> list[TextResource]:
    """Read a file."""
    try:
        on, name = paths.validate_server(variables["server"]), paths.validate_filename(variables["path"])
        content = await ctx.state.remote.read(name, on)
    # The code for a missing resource differs between revisions of the protocol.
    except (InvalidArgument, RemoteFailure) as error:
        raise ProtocolError(ctx.revision.missing_resource_code, str(error)) from None
    record_seen(ctx, on, {name: digest(content)})
    return [TextResource(uri=paths.make_uri(on, name), mime_type=paths.guess_mime_type(name), text=content)]


async def home_files(ctx: Context[Session]) -> list[ResourceItem]:
    """List the files on home; none if no game is connected."""
    names = await _names(ctx.state, paths.HOME)
    return [
        ResourceItem(paths.make_uri(paths.HOME, name), name, mime_type=paths.guess_mime_type(name))
        for name in names
    ]


async def complete_server(value: str, _: dict[str, str], ctx: Context[Session]) -> list[str]:
    """Complete a server's name; a game before 2.6 cannot list them, but has home."""
    if ctx.state.connection.link is None:
        return []
    try:
        names = [server.hostname for server in await ctx.state.remote.list_servers()]
    except BridgeError:
        names = [paths.HOME]
    return [name for name in names if name.startswith(value)]


async def complete_path(value: str, arguments: dict[str, str], ctx: Context[Session]) -> list[str]:
    """Complete a path on the server that the other argument names."""
    names = await _names(ctx.state, arguments.get("server", paths.HOME))
    return sorted(name for name in names if name.startswith(value.removeprefix("/")))


async def _names(session: Session, on: str) -> list[str]:
    """List a server's files without waiting for a game: clients ask for lists unprompted."""
    if session.connection.link is None:
        return []
    try:
        return await session.remote.list_names(on)
    except BridgeError:
        return []
