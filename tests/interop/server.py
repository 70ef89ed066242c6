"""The server that the official clients talk to: a few tools, resources and a prompt, one of each kind.

Run it over stdio with `python -m tests.interop.server`, over HTTP by adding `--http PORT`.
"""

import argparse
import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from bridgehead.mcp import Arguments, Bridge, Context, NoArguments, ToolError

CITIES = ("Lisbon", "Liverpool", "London", "Lyon", "Paris")
NAME_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Name"}},
    "required": ["name"],
}

bridge: Bridge[None] = Bridge(
    "interop", "1.0.0", instructions="Adds numbers, counts slowly and greets people."
)


class Pair(Arguments):
    a: Annotated[int, Meta(description="The first number.")]
    b: Annotated[int, Meta(description="The second number.")]


class Sum(Struct):
    sum: int


@bridge.tool("Add two whole numbers.", title="Add", read_only=True, idempotent=True)
async def add(args: Pair, ctx: Context[None]) -> Sum:
    return Sum(sum=args.a + args.b)


class Said(Arguments):
    text: Annotated[str, Meta(description="What to say back.")]


@bridge.tool("Say the text back, unchanged.", title="Echo", read_only=True, idempotent=True)
def echo(args: Said, ctx: Context[None]) -> str:
    return args.text


@bridge.tool("Name the protocol revision of this call.", title="Revision", read_only=True)
async def revision(args: NoArguments, ctx: Context[None]) -> str:
    return ctx.revision.name


class Count(Arguments):
    n: Annotated[int, Meta(description="How far to count.", ge=1, le=1000)]


class Counted(Struct):
    counted: int


class Cancellations(Struct):
    count: int


cancelled = Cancellations(count=0)


@bridge.tool(
    "Count slowly and report every step as progress.",
    title="Slow count",
    read_only=True,
    task="optional",
    task_grace_seconds=1,
)
async def slow_count(args: Count, ctx: Context[None]) -> Counted:
    try:
        for step in range(1, args.n + 1):
            # The answer follows the last progress at once: a client must not lose either.
            await asyncio.sleep(0.02)
            await ctx.progress(step, total=args.n, message=f"step {step} of {args.n}")
    except asyncio.CancelledError:
        cancelled.count += 1
        raise
    return Counted(counted=args.n)


@bridge.tool("Tell how many slow counts were cancelled.", title="Cancellations", read_only=True)
async def cancellations(args: NoArguments, ctx: Context[None]) -> Cancellations:
    return cancelled


@bridge.tool(
    "Ask the user for their name and greet them.",
    title="Ask for a name",
    read_only=True,
    task="optional",
    task_grace_seconds=0,
)
async def ask_name(args: NoArguments, ctx: Context[None]) -> str:
    answer = await ctx.elicit("What is your name?", NAME_SCHEMA, key="user_name")
    if answer.action != "accept" or answer.content is None:
        raise ToolError("The user gave no name.")
    return f"Hello, {answer.content['name']}!"


@bridge.resource("interop://motto", name="motto", description="One line of text.", mime_type="text/plain")
async def motto(ctx: Context[None]) -> str:
    return "Meet in the middle."


@bridge.template(
    "interop://cities/{city}",
    name="city",
    description="What is known of a city.",
    mime_type="text/plain",
)
async def city(variables: dict[str, str], ctx: Context[None]) -> str:
    return f"{variables['city']} is a city."


@bridge.complete_template("interop://cities/{city}", "city")
async def complete_city(value: str, given: dict[str, str], ctx: Context[None]) -> list[str]:
    return [name for name in CITIES if name.startswith(value)]


class Visit(Arguments):
    city: Annotated[str, Meta(description="The city to plan for.")]


@bridge.prompt("Plan a day in a city.", name="plan_day", title="Plan a day")
async def plan_day(args: Visit, ctx: Context[None]) -> str:
    return f"Plan a day in {args.city}."


@bridge.complete_prompt("plan_day", "city")
async def complete_visit(value: str, given: dict[str, str], ctx: Context[None]) -> list[str]:
    return [name for name in CITIES if name.startswith(value)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.server")
    parser.add_argument("--http", type=int, metavar="PORT", help="listen on this loopback port")
    port = parser.parse_args().http
    if port is None:
        from bridgehead.mcp.stdio import run

        return run(bridge)
    from bridgehead.mcp.http import application
    from bridgehead.mcp.http import run as listen

    listen(application(bridge), port=port)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
