"""Whatever a tool raises, in the loop or in a thread: its caller gets an answer, and the next call too."""

import asyncio

import pytest

from bridgehead.mcp import Bridge, in_memory
from tests.support.waiting import PATIENCE

RAISED = [
    GeneratorExit,
    SystemExit,
    KeyboardInterrupt,
    asyncio.CancelledError,
    StopIteration,
    StopAsyncIteration,
    RecursionError,
    MemoryError,
]


@pytest.mark.parametrize("kind", RAISED)
async def test_whatever_a_tool_raises_is_an_internal_error_of_its_call_alone(
    kind: type[BaseException],
) -> None:
    bridge: Bridge[None] = Bridge("raising", "1")

    def plain() -> str:
        raise kind("x")

    async def later() -> str:
        await asyncio.sleep(0)
        raise kind("x")

    bridge.tool("Raise at once.", name="plain")(plain)
    bridge.tool("Raise in a thread.", name="thread", in_thread=True)(plain)
    bridge.tool("Raise later.", name="later")(later)
    async with in_memory.connect(bridge) as client, asyncio.timeout(PATIENCE):
        for name in ("plain", "thread", "later") * 2:
            result = await client.request("tools/call", {"name": name, "arguments": {}})
            assert result["isError"]
            assert "Internal error" in result["content"][0]["text"]
