"""Servers: the tool that lists the servers of the game, in three groups by the player's access."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from bridgehead.mcp import Answer, Arguments, Context

from ..game import paths
from ..session import Session
from .declaring import MAX_QUERY, ToolDeclarer

Group = Literal["purchased", "rooted", "unrooted"]


class ListServers(Arguments):
    """Input of list_servers."""

    only: Annotated[Group, Meta(description="One group alone")] | None = None
    glob: (
        Annotated[str, Meta(max_length=MAX_QUERY, description="Only host names that fit, such as pserv-*")]
        | None
    ) = None


class Servers(Struct):
    """Output of list_servers: host names, each in one group."""

    purchased: list[str]
    """The player's own, home among them."""
    rooted: list[str]
    """Others with root access."""
    unrooted: list[str]
    total: int


_TITLES: dict[Group, str] = {
    "purchased": "Owned by the player",
    "rooted": "With root access",
    "unrooted": "Without root access",
}


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "List servers",
        "Servers of the Bitburner game by host name, in three groups: owned by the player, others with "
        "root access, without root access.",
    )(list_servers)


async def list_servers(args: ListServers, ctx: Context[Session]) -> Answer[Servers]:
    """List the servers."""
    groups: dict[Group, list[str]] = {"purchased": [], "rooted": [], "unrooted": []}
    for server in await ctx.state.remote.list_servers():
        group: Group = "rooted" if server.hasAdminRights else "unrooted"
        if server.purchasedByPlayer:
            group = "purchased"
        if args.only in (None, group) and paths.matches(server.hostname, args.glob):
            groups[group].append(server.hostname)
    total = sum(map(len, groups.values()))
    lines = [
        f"{_TITLES[group]} ({len(names)}): {', '.join(names)}" for group, names in groups.items() if names
    ]
    answer = Servers(groups["purchased"], groups["rooted"], groups["unrooted"], total)
    return Answer("\n".join(lines) or "No server fits.", answer)
