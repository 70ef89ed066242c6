"""`bridgehead serve` with one small bridge that has the tools of the bench: `-m bench.host.ours PORT`."""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from bridgehead.host.command import main
from bridgehead.mcp import Arguments, Bridge, Context
from bridgehead.runtime.hosting import FarSide, Hosted
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.settings import Settings


class Echo(Arguments):
    """What is said back."""

    text: Annotated[str, Meta(description="What to say back")]


class Add(Arguments):
    """What is added up."""

    a: Annotated[int, Meta(description="One number")]
    b: Annotated[int, Meta(description="Another number")]


class Sum(Struct):
    """What came out."""

    sum: int


def hosted(environment: Mapping[str, str], metrics: Metrics) -> Hosted:
    """Make the bridge with the tools of the bench."""
    bridge: Bridge[None] = Bridge("bench", "1.0.0")

    @bridge.tool("Says back what it is told.", read_only=True)
    def echo(args: Echo, ctx: Context[Any]) -> str:
        return args.text

    @bridge.tool("Adds two numbers up.", read_only=True)
    def add(args: Add, ctx: Context[Any]) -> Sum:
        return Sum(args.a + args.b)

    @bridge.tool("Says it after a turn of the loop.", read_only=True)
    async def later(args: Echo, ctx: Context[Any]) -> str:
        await asyncio.sleep(0)
        return args.text

    return Hosted(bridge, Settings(environment), metrics, lambda _: FarSide(is_there=True, says="There."))


if __name__ == "__main__":
    sys.exit(main(["--port", sys.argv[1]], os.environ, lambda _wanted: {"bench": hosted}))
