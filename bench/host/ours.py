"""`bridgehead serve` with small bridges: `python -m bench.host.ours PORT FLAKY NAME ...`.

Each bridge has the tools of the bench, named after it, or plain ones where there is one bridge. The far side
of a bridge called `flaky` is away for as long as there is a file of the name FLAKY.
"""

import asyncio
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from bridgehead.host.command import main
from bridgehead.mcp import Arguments, Bridge, Context, ToolError
from bridgehead.runtime.hosting import Factory, FarSide, Hosted
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


def factory(name: str, prefix: str, away: Path | None) -> Factory:
    """Make what makes a bridge with the tools of the bench."""

    def make(environment: Mapping[str, str], metrics: Metrics) -> Hosted:
        bridge: Bridge[None] = Bridge(name, "1.0.0")

        def crossed() -> None:
            if away is not None and away.exists():
                raise ToolError("The far side is away. Try again later.")

        @bridge.tool("Says back what it is told.", name=f"{prefix}echo", read_only=True)
        def echo(args: Echo, ctx: Context[Any]) -> str:
            crossed()
            return args.text

        @bridge.tool("Adds two numbers up.", name=f"{prefix}add", read_only=True)
        def add(args: Add, ctx: Context[Any]) -> Sum:
            crossed()
            return Sum(args.a + args.b)

        @bridge.tool("Says it after a turn of the loop.", name=f"{prefix}later", read_only=True)
        async def later(args: Echo, ctx: Context[Any]) -> str:
            crossed()
            await asyncio.sleep(0)
            return args.text

        return Hosted(bridge, Settings(environment), metrics, lambda _: FarSide(is_there=True, says="There."))

    return make


def run(port: str, flaky: str, names: list[str]) -> int:
    """Serve until told to end."""

    def factories(_wanted: Collection[str]) -> Mapping[str, Factory]:
        prefixes = {name: f"{name}_" if len(names) > 1 else "" for name in names}
        return {
            name: factory(name, prefixes[name], Path(flaky) if name == "flaky" else None) for name in names
        }

    return main(["--port", port], os.environ, factories)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2], sys.argv[3:]))
