"""The echo server on Bridgehead, over stdio or HTTP."""

import sys
from typing import Annotated, Any

from bridgehead.mcp import Arguments, Bridge, Context

# As in a project that has Bridgehead installed, where it comes before msgspec.
# isort: split
from msgspec import Meta


class Echo(Arguments):
    """What the tool is called with."""

    text: Annotated[str, Meta(description="What to say back")]


bridge: Bridge[None] = Bridge("echo", "1.0.0")


def plain(args: Echo, ctx: Context[Any]) -> str:
    """Answer with the text that came in: nothing to wait for, so a plain function."""
    return args.text


async def coroutine(args: Echo, ctx: Context[Any]) -> str:
    """Do the same as a coroutine, which gets a task of its own."""
    return args.text


bridge.tool("Says back what it is told.", name="echo", read_only=True)(
    coroutine if "coroutine" in sys.argv else plain
)


def serve_http(port: int) -> None:
    """Serve the bridge on loopback."""
    from bridgehead.mcp.http import application, run

    run(application(bridge), port=port)


if __name__ == "__main__":
    if sys.argv[-1] == "stdio":
        from bridgehead.mcp.stdio import run

        sys.exit(run(bridge))
    serve_http(int(sys.argv[-1]))
