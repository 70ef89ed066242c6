"""Stand-in bridges for the host: small, each with a far side that a test takes away and gives back."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from msgspec import Meta

from bridgehead.mcp import Arguments, Bridge, Context, NoArguments, ToolError
from bridgehead.runtime import logs
from bridgehead.runtime.manifest import FarSide, Manifest
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.settings import TEXT, Setting, Settings
from bridgehead.runtime.tool_filter import prefix_setting


class Say(Arguments):
    text: Annotated[str, Meta(description="What to say back")]


class Repeat(Say):
    times: int = 2


class StandInSettings(Settings):
    trouble = Setting("STAND_IN_TROUBLE", TEXT, "", "Names of stand-ins that cannot be made or begun.")
    tool_prefix = prefix_setting("STAND_IN_TOOL_PREFIX", "my_")


class Far:
    """A far side, and what came to it."""

    def __init__(self) -> None:
        self.is_there = True
        self.visitors: list[str | None] = []
        self.traces: list[dict[str, str]] = []
        self.begun = 0
        self.ended = 0
        self.trouble: Exception | None = None
        """What keeps the bridge from beginning."""
        self.probe: Callable[[], Awaitable[None]] | None = None
        """What happens when the host looks at it."""
        self.probed = 0


def make_bridge(name: str, far: Far) -> Bridge[Far]:
    """Make a stand-in whose tools, resources and prompts are named after it."""

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[Far]:
        if far.trouble is not None:
            raise far.trouble
        far.begun += 1
        yield far
        far.ended += 1

    bridge: Bridge[Far] = Bridge(
        name,
        "1.0.0",
        lifespan=lifespan,
        changing={"resources"},
        subscribable=True,
        instructions=f"I am {name}.",
    )

    def crossed(ctx: Context[Far]) -> None:
        if not far.is_there:
            raise ToolError(f"The far side of {name} is away. Try again later.")
        far.visitors.append(ctx.principal)
        far.traces.append(ctx.trace)

    @bridge.tool("Says back what it is told.", name=f"{name}_echo", read_only=True)
    def echo(args: Say, ctx: Context[Far]) -> str:
        crossed(ctx)
        return ctx.trace.get("traceparent", "none") if args.text == "your trace" else args.text

    @bridge.tool("Says it after a while.", name=f"{name}_later", read_only=True)
    async def later(args: Say, ctx: Context[Far]) -> str:
        crossed(ctx)
        await asyncio.sleep(0.003)  # at least 1 ms: libuv's timers may fire up to a millisecond early
        return args.text

    @bridge.tool("Says it at once or after a while.", name=f"{name}_either", read_only=True)
    def either(args: Say, ctx: Context[Far]) -> str | Coroutine[Any, Any, str]:
        return "now" if args.text == "now" else later(args, ctx)

    @bridge.tool("Says it in a moment, and logs that it has begun.", name=f"{name}_soon", read_only=True)
    async def soon(args: Say, ctx: Context[Far]) -> str:
        logs.logger("stand_in").info(f"{name}_soon has begun")
        await asyncio.sleep(0.3)
        return args.text

    @bridge.tool("Writes something down.", name=f"{name}_write", destructive=True)
    async def write(args: Say, ctx: Context[Far]) -> str:
        crossed(ctx)
        bridge.changed.resource(f"{name}://note")
        return f"wrote {args.text}"

    @bridge.tool(
        "Waits until it is cancelled.",
        name=f"{name}_wait",
        read_only=True,
        task="optional",
        task_grace_seconds=0.01,
    )
    async def wait(args: NoArguments, ctx: Context[Far]) -> str:
        crossed(ctx)
        await ctx.progress(1, 2, "waiting")
        await asyncio.sleep(600)
        return "waited"

    @bridge.tool("Fails as no tool should.", name=f"{name}_bug", read_only=True)
    def bug(args: NoArguments, ctx: Context[Far]) -> str:
        raise RuntimeError("a secret of the inside")

    @bridge.resource(f"{name}://note", name=f"{name} note", mime_type="text/plain")
    def note(ctx: Context[Far]) -> str:
        return f"the note of {name}"

    @bridge.prompt("Greets.", name=f"{name}_greet")
    def greet(args: NoArguments, ctx: Context[Far]) -> str:
        return f"Greet {name}."

    if name == "slow":
        add_slow_tools(bridge)
    return bridge


def add_slow_tools(bridge: Bridge[Far]) -> None:
    """Add tools that take their time, in the loop, in a thread, or because they ask first."""

    @bridge.tool("Keeps the loop for a while.", name="slow_block", read_only=True)
    def block(args: Say, ctx: Context[Far]) -> str:
        time.sleep(float(args.text))
        return "blocked"

    @bridge.tool("Says it several times.", name="slow_repeat", read_only=True)
    def repeat(args: Repeat, ctx: Context[Far]) -> str:
        return args.text * args.times

    @bridge.tool(
        "Erases it, once somebody is sure.",
        name="slow_erase",
        destructive=True,
        effect="erases (can be undone)",
    )
    async def erase(args: Say, ctx: Context[Far]) -> str:
        answer = await ctx.elicit("Sure?", Say)
        return f"erased {args.text}: {answer.action}"

    @bridge.tool("Takes as long in a thread.", name="slow_work", read_only=True, in_thread=True)
    def work(args: Say, ctx: Context[Far]) -> str:
        time.sleep(float(args.text))
        return f"worked in {threading.current_thread().name}"

    @bridge.tool("Asks before it says it.", name="slow_ask", read_only=True)
    async def ask(args: Say, ctx: Context[Far]) -> str:
        answer = await ctx.elicit(args.text, {"type": "object", "properties": {"name": {"type": "string"}}})
        return f"{answer.content}"


def add_paid_tool(name: str, bridge: Bridge[Far]) -> None:
    """Add a tool that changes nothing and costs money."""

    @bridge.tool("Says it for money.", name=f"{name}_buy", read_only=True, paid=True)
    def buy(args: Say, ctx: Context[Far]) -> str:
        return args.text


class StandIns:
    """The stand-ins of one host, and their far sides."""

    def __init__(self, *names: str) -> None:
        self.far = {name: Far() for name in names}
        self.unmakeable: dict[str, Exception] = {}
        self.alone: dict[str, str] = {}
        self.paid: set[str] = set()
        """Which have a tool that costs money."""

    def manifests(self, wanted: Collection[str] = ()) -> Mapping[str, Manifest]:
        """Give the manifests as the host takes them."""
        return {name: self._manifest(name) for name in wanted or self.far}

    def _manifest(self, name: str) -> Manifest:
        far = self.far[name]

        def make(_settings: StandInSettings, metrics: Metrics | None) -> Bridge[Far]:
            if name in self.unmakeable:
                raise self.unmakeable[name]
            if metrics is not None:
                metrics.counter("stand_in_made_total", "Made.", "why").add('it "was"\nwanted')
            bridge = make_bridge(name, far)
            if name in self.paid:
                add_paid_tool(name, bridge)
            return bridge

        def far_side(state: Any) -> FarSide:
            there = state is not None and state.is_there
            return FarSide(there, f"The far side of {name} is {'there' if there else 'away'}.")

        async def probe(state: Far) -> None:
            state.probed += 1
            if state.probe is not None:
                await state.probe()

        return Manifest(
            name=name,
            title=name.title(),
            summary="a stand-in",
            description="A stand-in.",
            settings=StandInSettings,
            make=make,
            far_side=far_side,
            probe=probe,
            single_process=self.alone.get(name, ""),
        )
