"""`bridgehead serve` with one small bridge that has the tools of the bench: `-m bench.host.ours PORT`.

`app` makes the same host an ASGI application, for other servers to run.
"""

import asyncio
import os
import sys
import time
from typing import Annotated, Any

from msgspec import Meta, Struct

from bridgehead.host.asgi import create_app
from bridgehead.host.command import main
from bridgehead.mcp import Arguments, Bridge, Context
from bridgehead.mcp.http.asgi import AsgiApplication
from bridgehead.runtime.manifest import FarSide, Manifest
from bridgehead.runtime.settings import Settings


class Echo(Arguments):
    """What is said back."""

    text: Annotated[str, Meta(description="What to say back")]


class Add(Arguments):
    """What is added up."""

    a: Annotated[int, Meta(description="One number")]
    b: Annotated[int, Meta(description="Another number")]


class Block(Arguments):
    """How long nothing else is done."""

    seconds: Annotated[float, Meta(description="For how long to block")]


class Sum(Struct):
    """What came out."""

    sum: int


def make_bridge() -> Bridge[None]:
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

    @bridge.tool("Blocks the whole process.")
    def block(args: Block, ctx: Context[Any]) -> str:
        time.sleep(args.seconds)
        return "done"

    @bridge.tool("Blocks a thread.", in_thread=True)
    def block_thread(args: Block, ctx: Context[Any]) -> str:
        time.sleep(args.seconds)
        return "done"

    return bridge


MANIFEST = Manifest(
    name="bench",
    title="Bench",
    summary="the tools of the bench",
    description="The tools of the bench.",
    settings=Settings,
    make=lambda _settings, _metrics: make_bridge(),
    far_side=lambda _: FarSide(is_up=True, detail="There."),
)


def app() -> AsgiApplication:
    """Give the host with this bridge to a server that speaks ASGI."""
    return create_app(manifests=lambda _wanted: {"bench": MANIFEST})


if __name__ == "__main__":
    sys.exit(main(["--port", sys.argv[1]], os.environ, lambda _wanted: {"bench": MANIFEST}))
