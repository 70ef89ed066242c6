"""The length of a tool list: every page of it counts."""

from bridgehead.mcp import Bridge, Context, NoArguments
from tests.support.tool_cost import tool_bytes


async def test_every_page_of_a_list_is_counted() -> None:
    bridge: Bridge[None] = Bridge("pages", "1", page_size=1)

    def answer(args: NoArguments, ctx: Context[None]) -> str:
        return "x"

    bridge.tool("Answer.", name="short")(answer)
    bridge.tool("Answer. " * 100, name="long")(answer)
    sizes = await tool_bytes(bridge)

    assert list(sizes) == ["short", "long"]
    assert 760 < sizes["long"] - sizes["short"] < 840
