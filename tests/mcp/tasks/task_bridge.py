"""A bridge whose calls become tasks: owns tools that wait for a test, ask, tell, fail and quit."""

import asyncio
from typing import Any

from msgspec import Struct

from bridgehead.mcp import (
    Arguments,
    Bridge,
    Context,
    NoArguments,
    ProtocolError,
    ToolError,
    elicitation,
)


class Size(Arguments):
    size: int


class Name(Struct):
    name: str


class Workshop:
    """The bridge, and what a test holds of its tools."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun = 0
        self.stopped = 0
        self.bridge: Bridge[None] = Bridge("workshop", "1")
        self._declare_waiting()
        self._declare_quick()
        self._declare_asking()
        self._declare_ending()

    def _declare_waiting(self) -> None:
        async def wait() -> str:
            self.begun += 1
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.stopped += 1
                raise
            return "done"

        @self.bridge.tool("Work until the door opens.", task="required", task_grace_seconds=0)
        async def work(_args: NoArguments, ctx: Context[None]) -> str:
            return await wait()

        @self.bridge.tool("The same, unless it is quick.", task="optional", task_grace_seconds=0.01)
        async def maybe(_args: NoArguments, ctx: Context[None]) -> str:
            return await wait()

        @self.bridge.tool("The same, as a task at once.", task="optional", task_grace_seconds=0)
        async def at_once(_args: NoArguments, ctx: Context[None]) -> str:
            return f"{await wait()}, {await ctx.detach()}"

        @self.bridge.tool("The same, a task if it may.", task="optional", task_grace_seconds=60)
        async def if_it_may(_args: NoArguments, ctx: Context[None]) -> str:
            return f"{await ctx.detach()}, {await wait()}"

        @self.bridge.tool("The same, a task a little later.", task="required", task_grace_seconds=0.01)
        async def soon(_args: NoArguments, ctx: Context[None]) -> str:
            return await wait()

        @self.bridge.tool("The same, and patient.", task="optional", task_grace_seconds=60)
        async def patient(_args: NoArguments, ctx: Context[None]) -> str:
            return await wait()

    def _declare_quick(self) -> None:
        @self.bridge.tool("Answer at once.", task="optional")
        async def quick(_args: NoArguments, ctx: Context[None]) -> str:
            return "quick"

        @self.bridge.tool("Answer at once, as a task.", task="required", task_grace_seconds=0)
        async def quick_task(_args: NoArguments, ctx: Context[None]) -> str:
            return "quick"

        @self.bridge.tool("Answer a quick call without a task.", task="required")
        def plain(_args: NoArguments, ctx: Context[None]) -> str:
            return "plain"

        @self.bridge.tool("Tell of progress.", task="required", task_grace_seconds=0)
        async def tell(_args: NoArguments, ctx: Context[None]) -> str:
            await ctx.progress(1, 3)
            await ctx.log("info", "not for tasks")
            await self.open.wait()
            await ctx.progress(2, 3, "nearly")
            return "told"

    def _declare_asking(self) -> None:
        @self.bridge.tool("Ask for a name, again and again.", task="required", task_grace_seconds=0)
        async def ask(_args: NoArguments, ctx: Context[None]) -> str:
            first = await ctx.elicit("Name?", Name)
            second = await ctx.elicit("Another?", Name)
            return f"{first.content.name} and {second.content.name}"

        @self.bridge.tool("Ask for two at once.", task="required", task_grace_seconds=0)
        async def ask_both(_args: NoArguments, ctx: Context[None]) -> str:
            answers = await ctx.ask({"a": elicitation("A?", Name), "b": elicitation("B?", Name)})
            return " and ".join(answer.content.name for answer in answers.values())

        @self.bridge.tool("Ask before and in the task.", task="required", task_grace_seconds=60)
        async def ask_then_work(_args: NoArguments, ctx: Context[None]) -> str:
            before = await ctx.elicit("Before?", Name)
            is_task = await ctx.detach()
            within = await ctx.elicit("Within?", Name)
            return f"{before.content.name}, {within.content.name}, {is_task}"

    def _declare_ending(self) -> None:
        @self.bridge.tool("Fail as a tool.", task="required", task_grace_seconds=0)
        async def fail(_args: NoArguments, ctx: Context[None]) -> str:
            raise ToolError("It cannot be done.")

        @self.bridge.tool("Fail as a protocol.", task="required", task_grace_seconds=0)
        async def refuse(_args: NoArguments, ctx: Context[None]) -> str:
            raise ProtocolError(-32000, "Not now.", {"retry": 5})

        @self.bridge.tool("Fail as a bug.", task="required", task_grace_seconds=0)
        async def bug(_args: NoArguments, ctx: Context[None]) -> str:
            raise RuntimeError("secret")

        @self.bridge.tool("Answer much.", task="required", task_grace_seconds=0)
        async def much(args: Size, ctx: Context[None]) -> str:
            return "x" * args.size


def accept(name: str) -> dict[str, Any]:
    """Give a client's answer to a form."""
    return {"action": "accept", "content": {"name": name}}
