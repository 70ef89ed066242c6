"""The cost of a tool list: what a model reads before it has done anything is kept small."""

import pytest

from bridgehead.mcp import Bridge, Context, NoArguments
from examples.greeter import bridge as greeter
from tests.support.tool_cost import assert_lean, tool_costs


async def test_the_tools_of_the_greeter_are_lean() -> None:
    await assert_lean(greeter, {"greet": 140})


async def test_every_page_of_a_list_is_counted() -> None:
    bridge: Bridge[None] = Bridge("pages", "1", page_size=1)

    def answer(args: NoArguments, ctx: Context[None]) -> str:
        return "x"

    bridge.tool("Answer.", name="short")(answer)
    bridge.tool("Answer. " * 100, name="long")(answer)
    costs = await tool_costs(bridge)

    assert list(costs) == ["short", "long"]
    assert 190 < costs["long"] - costs["short"] < 210


async def test_a_tool_over_its_budget_or_without_one_is_found() -> None:
    with pytest.raises(AssertionError, match="over their budget"):
        await assert_lean(greeter, {"greet": 10})
    with pytest.raises(AssertionError, match="needs a budget"):
        await assert_lean(greeter, {})
