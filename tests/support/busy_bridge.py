"""The bridge of the transport tests: tools that wait, block, print, ask, count and announce.

`make_bridge` gives a bridge and its `Work`, through which a test in the same process steers what runs.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from bridgehead.mcp import Arguments, Bridge, Context, NoArguments, ToolError

MEMO = "memo://today"
FORM = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Name"}},
    "required": ["name"],
}


class Work:
    """What the handlers do: counted, and steered by `go`."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.cancelled = 0
        self.began = asyncio.Semaphore(0)
        self.go = asyncio.Semaphore(0)
        self.idle = asyncio.Event()
        self.idle.set()

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        """Count a handler while it runs."""
        self.running += 1
        self.most = max(self.most, self.running)
        self.idle.clear()
        self.began.release()
        try:
            yield
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
            if not self.running:
                self.idle.set()


class Said(Arguments):
    text: Annotated[str, Meta(description="What to say back.")]


class Marked(Arguments):
    marker: Annotated[str, Meta(description="A file to write to at the end; none if empty.")] = ""


class Waited(Arguments):
    file: Annotated[str, Meta(description="The file whose appearance ends the wait.")]


class Sized(Arguments):
    size: Annotated[int, Meta(description="How many bytes to answer.", ge=0)]


class Counted(Arguments):
    n: Annotated[int, Meta(description="How far to count.", ge=0)]


class Changed(Arguments):
    what: Annotated[str, Meta(description="tools, prompts, resources, or a resource's URI.")]


class Stats(Struct):
    running: int
    most: int
    cancelled: int
    tasks: int


def make_bridge() -> tuple[Bridge[Any], Work]:
    """Make a bridge of its own, and what it works on."""
    bridge: Bridge[Any] = Bridge(
        "busy",
        "1.0.0",
        changing={"tools", "prompts", "resources"},
        subscribable=True,
        page_size=50,
        checked=False,  # one of its tools has a name that no header can carry
    )
    work = Work()
    _add_plain_tools(bridge, work)
    _add_waiting_tools(bridge, work)
    _add_stepping_tools(bridge, work)
    _add_telling_tools(bridge, work)
    _add_rude_tools(bridge, work)
    _add_ruder_tools(bridge, work)
    _add_routed_tool(bridge)
    _add_readable_things(bridge)
    return bridge, work


def _add_plain_tools(bridge: Bridge[Any], work: Work) -> None:
    @bridge.tool("Say the text back.", read_only=True)
    async def echo(args: Said, ctx: Context[Any]) -> str:
        return args.text

    @bridge.tool("Say the text back at once.", read_only=True)
    def sync_echo(args: Said, ctx: Context[Any]) -> str:
        return args.text

    @bridge.tool("Answer many bytes.", read_only=True)
    async def big(args: Sized, ctx: Context[Any]) -> str:
        return "x" * args.size

    @bridge.tool("Answer many bytes at once.", read_only=True)
    def sync_big(args: Sized, ctx: Context[Any]) -> str:
        return "x" * args.size

    @bridge.tool("Fail in a way that nobody foresaw.")
    async def bug(args: NoArguments, ctx: Context[Any]) -> str:
        raise RuntimeError("the secret text of a bug")

    @bridge.tool("Tell what runs.", read_only=True)
    async def stats(args: NoArguments, ctx: Context[Any]) -> Stats:
        return Stats(work.running, work.most, work.cancelled, len(asyncio.all_tasks()))


def _add_waiting_tools(bridge: Bridge[Any], work: Work) -> None:
    @bridge.tool("Wait until cancelled, then leave a mark.")
    async def wait(args: Marked, ctx: Context[Any]) -> str:
        try:
            async with work.counted():
                await ctx.progress(1)
                await asyncio.Event().wait()
        finally:
            if args.marker:
                Path(args.marker).write_text("the end was reached", encoding="utf-8")
        return "never said"

    @bridge.tool("Wait until a file appears.")
    async def wait_for_file(args: Waited, ctx: Context[Any]) -> str:
        async with work.counted():
            await ctx.progress(1)
            while not Path(args.file).exists():
                await asyncio.sleep(0.01)
        return "it is there"


def _add_stepping_tools(bridge: Bridge[Any], work: Work) -> None:
    @bridge.tool("Count, a step at a time, each step when the test lets it go.")
    async def steps(args: Counted, ctx: Context[Any]) -> str:
        async with work.counted():
            for step in range(1, args.n + 1):
                await ctx.progress(step, args.n)
                await work.go.acquire()
        return f"counted to {args.n}"

    @bridge.tool("Let go of the stream in the middle of the work.")
    async def detach(args: NoArguments, ctx: Context[Any]) -> str:
        async with work.counted():
            await ctx.close_stream()
            await ctx.close_stream()
            await work.go.acquire()
            await ctx.progress(1)
            await work.go.acquire()
        return "came back"

    @bridge.tool("Ask the user for a name.")
    async def ask(args: NoArguments, ctx: Context[Any]) -> str:
        answer = await ctx.elicit("What is your name?", FORM, key="name")
        if answer.content is None:
            raise ToolError("The user gave no name.")
        return f"Hello, {answer.content['name']}!"


def _add_telling_tools(bridge: Bridge[Any], work: Work) -> None:
    @bridge.tool("Count as fast as possible, and tell each step.")
    async def count(args: Counted, ctx: Context[Any]) -> str:
        for step in range(1, args.n + 1):
            await ctx.progress(step, args.n, f"step {step}")
        return f"counted to {args.n}"

    @bridge.tool("Announce a change.")
    async def change(args: Changed, ctx: Context[Any]) -> str:
        lists = {
            "tools": bridge.changed.tools,
            "prompts": bridge.changed.prompts,
            "resources": bridge.changed.resources,
        }
        lists.get(args.what, lambda: bridge.changed.resource(args.what))()
        return "announced"


def _add_rude_tools(bridge: Bridge[Any], work: Work) -> None:
    @bridge.tool("Print in three ways to what was standard output.")
    async def chatter(args: NoArguments, ctx: Context[Any]) -> str:
        print("said by print", flush=True)  # noqa: T201  (that it prints is what is tested)
        os.write(1, b"said by os.write\n")
        subprocess.run([sys.executable, "-c", "print('said by a child')"], check=True)
        child = subprocess.run(
            [sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"],
            check=True,
            capture_output=True,
        )
        return f"the child read {int(child.stdout)} characters"

    @bridge.tool("Refuse to be cancelled.")
    async def stubborn(args: NoArguments, ctx: Context[Any]) -> str:
        await ctx.progress(1)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue


def _add_ruder_tools(bridge: Bridge[Any], work: Work) -> None:
    @bridge.tool("Block the loop for ever.")
    async def block(args: NoArguments, ctx: Context[Any]) -> str:
        await ctx.progress(1)
        await asyncio.sleep(0.05)  # so that what was said goes out first
        threading.Event().wait()
        return "never said"

    @bridge.tool("Block a thread for ever.")
    async def stuck(args: NoArguments, ctx: Context[Any]) -> str:
        work.began.release()
        await ctx.progress(1)
        await asyncio.to_thread(threading.Event().wait)
        return "never said"

    @bridge.tool("Leave, as a program does that has nothing more to do.")
    async def leave(args: NoArguments, ctx: Context[Any]) -> str:
        async def exiting() -> str:
            raise SystemExit(3)

        return await asyncio.create_task(exiting())


class Place(Struct):
    zone: str = ""


class Routed(Arguments):
    region: str | None = None
    amount: int | None = None
    dry: bool | None = None
    place: Place | None = None


ROUTED_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "amount": {"type": "integer", "x-mcp-header": "Amount"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "place": {
            "type": "object",
            "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}},
        },
    },
}


def _add_routed_tool(bridge: Bridge[Any]) -> None:
    @bridge.tool("Take arguments that headers repeat.", read_only=True, input_schema=ROUTED_SCHEMA)
    async def routed(args: Routed, ctx: Context[Any]) -> str:
        return f"{args.region} {args.amount} {args.dry}"

    @bridge.tool("Have a name that no header can carry.", name="größe", read_only=True)
    async def size(args: NoArguments, ctx: Context[Any]) -> str:
        return "large"


def _add_readable_things(bridge: Bridge[Any]) -> None:
    @bridge.resource(MEMO, name="today", mime_type="text/plain")
    async def today(ctx: Context[Any]) -> str:
        return "Meet in the middle."

    @bridge.template("memo://days/{day}", name="day", mime_type="text/plain")
    async def day(variables: dict[str, str], ctx: Context[Any]) -> str:
        return f"Nothing on {variables['day']}."

    @bridge.prompt("Greet somebody.")
    async def greet(args: Said, ctx: Context[Any]) -> str:
        return f"Greet with {args.text}."
