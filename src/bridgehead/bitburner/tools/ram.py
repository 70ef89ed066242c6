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
from .files import add_block
from .scripts import itemise_cost

if TYPE_CHECKING:
    from ..game.remote import Remote
    from ..netscript.costs import Itemised

_CLOSE = 0.005


class CalculateRam(Arguments):
    """Input of calculate_ram."""

    filename: Filename
    server: Server = paths.HOME


class RamItem(Struct):
    """A function and what it costs, once for a script."""

    name: str
    ram_gb: float


class RamCost(Struct):
    """Output of calculate_ram: the game's figure, and what it is made of by its definitions."""

    ram_gb: float
    items: list[RamItem] = []
    items_sum_gb: float | None = None


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.read_tool(
        "Calculate RAM", "The RAM cost of a script in GB, as a number, and what each function adds to it."
    )(calculate_ram)


async def calculate_ram(args: CalculateRam, ctx: Context[Session]) -> Answer[RamCost]:
    """Calculate what a script costs."""
    name, on = paths.validate_script(args.filename), paths.validate_server(args.server)
    cost = await ctx.state.remote.calculate_ram(name, on)
    itemised = await itemise_cost(ctx.state, on, name, cost)
    answer = Answer(format_cost(cost), RamCost(cost))
    if itemised is None:
        return answer
    answer.structured.items = [RamItem(one.name, one.ram_gb) for one in itemised.items]
    answer.structured.items_sum_gb = itemised.sum_gb
    return add_block(answer, describe_items(itemised, cost))


def describe_items(itemised: Itemised, cost: float | None) -> str:
    """Give a line for each function, and say so where the sum is not the game's figure."""
    lines = [f"{format_cost(1.6):>8} GB  base"]
    lines += [f"{format_cost(one.ram_gb):>8} GB  {one.name}" for one in itemised.items]
    if cost is not None and abs(itemised.sum_gb - cost) >= _CLOSE:
        lines.append(
            f"The sum is {format_cost(itemised.sum_gb)} GB by the definitions; the game says "
            f"{format_cost(cost)} GB, and that is what counts."
        )
    return "\n".join(lines)


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
