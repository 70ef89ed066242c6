"""RAM: what a script costs to run, as a tool, and as an addition to a write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from bridgehead.mcp import Answer, Arguments, Context
from bridgehead.runtime.errors import BridgeError

from ..game import paths
from ..session import Session
from .declaring import Filename, Server, ToolDeclarer

if TYPE_CHECKING:
    from ..game.remote import Remote


class CalculateRam(Arguments):
    """Input of calculate_ram."""

    filename: Filename
    server: Server = paths.HOME


class RamCost(Struct):
    """Output of calculate_ram."""

    ram_gb: float


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool("Calculate RAM", "The RAM cost of a script in GB, as a number.")(calculate_ram)


async def calculate_ram(args: CalculateRam, ctx: Context[Session]) -> Answer[RamCost]:
    """Calculate what a script costs."""
    name, on = paths.validate_script(args.filename), paths.validate_server(args.server)
    cost = await ctx.state.remote.calculate_ram(name, on)
    return Answer(format_cost(cost), RamCost(cost))


def format_cost(cost: float) -> str:
    """Give a cost as the game writes it: without a fraction where there is none."""
    return msgspec.json.encode(int(cost) if cost.is_integer() else cost).decode()


async def measure_cost(remote: Remote, name: str, server: str) -> tuple[float | None, str | None]:
    """Return a script's cost, or why there is none; nothing at all for other files."""
    if not paths.is_script(name):
        return None, None
    try:
        return await remote.calculate_ram(name, server), None
    except BridgeError as error:
        return None, error.message


def describe_cost(cost: float | None, problem: str | None) -> str:
    """Say what a script costs, or why that is not known; nothing for what has none."""
    return f"It costs {format_cost(cost)} GB of RAM." if cost is not None else problem or ""
