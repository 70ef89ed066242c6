"""A stdio server that tells, on standard error, which modules it had loaded when its first answer went out.

The event loop's part of the server is imported right after the first answer was written, so that is the
moment at which it looks. Run as a process of its own; it declares what an ordinary bridge declares and loads
no more than that needs.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Arguments, Bridge, Context, stdio

FIRST_AFTER_THE_ANSWER = "bridgehead.mcp.stdio.server"


def look(event: str, arguments: tuple[object, ...]) -> None:
    """Hear of every import; at the first one after the answer, tell what there is."""
    if event == "import" and arguments[0] == FIRST_AFTER_THE_ANSWER:
        sys.stderr.write(" ".join(sorted(sys.modules)) + "\n")
        sys.stderr.flush()


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    yield None


bridge: Bridge[None] = Bridge("probe", "1", lifespan=lifespan, instructions="Look.", subscribable=True)


class Greet(Arguments):
    name: Annotated[str, Meta(min_length=1)]


class Greeting(Struct):
    greeting: str


@bridge.tool("Greet somebody.", read_only=True)
async def greet(args: Greet, ctx: Context[None]) -> Greeting:
    return Greeting(f"Hello, {args.name}!")


@bridge.resource("probe://it", name="it")
def read(ctx: Context[None]) -> str:
    return "it"


@bridge.template("probe://things/{thing}", name="thing")
def read_thing(variables: dict[str, str], ctx: Context[None]) -> str:
    return variables["thing"]


@bridge.prompt("Greet somebody.")
def prompt(args: Greet, ctx: Context[None]) -> str:
    return f"Greet {args.name}."


if __name__ == "__main__":
    sys.addaudithook(look)
    raise SystemExit(stdio.run(bridge))
