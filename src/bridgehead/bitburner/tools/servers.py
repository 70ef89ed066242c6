"""Servers: the tool that lists the servers of the game."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from bridgehead.mcp import Answer, Context, NoArguments

from ..session import Session
from .declaring import ToolDeclarer


class Server(Struct):
    """A server as it is listed."""

    hostname: str
    has_admin_rights: bool
    purchased_by_player: bool


class Servers(Struct):
    """Output of list_servers."""

    servers: list[Server]


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "List servers",
        "The game's servers by host name, with whether the player has root access and bought them.",
    )(list_servers)


async def list_servers(_: NoArguments, ctx: Context[Session]) -> Answer[Servers]:
    """List the servers."""
    found = await ctx.state.remote.list_servers()
    servers = [Server(one.hostname, one.hasAdminRights, one.purchasedByPlayer) for one in found]
    return Answer(msgspec.json.encode(servers).decode(), Servers(servers))
