"""What a tool list costs: owns how a model's reading of it is counted.

A token is taken as four bytes of the encoded list, which is near enough to what models charge for JSON to
hold a budget with, and needs no tokenizer.
"""

from typing import Any

import msgspec

from bridgehead.mcp import Bridge
from tests.support.checked import connect

BYTES_A_TOKEN = 4


async def tool_costs(bridge: Bridge[Any]) -> dict[str, int]:
    """Give the tokens that each tool of a bridge costs in the list that a newest client reads."""
    async with connect(bridge) as client:
        costs: dict[str, int] = {}
        params = None
        while True:
            result = await client.request("tools/list", params)
            costs |= {
                tool["name"]: -(-len(msgspec.json.encode(tool)) // BYTES_A_TOKEN) for tool in result["tools"]
            }
            if "nextCursor" not in result:
                return costs
            params = {"cursor": result["nextCursor"]}


async def assert_lean(bridge: Bridge[Any], budgets: dict[str, int]) -> None:
    """Hold each tool of a bridge to its budget of tokens; a tool without a budget is refused."""
    costs = await tool_costs(bridge)
    assert set(costs) == set(budgets), f"each tool needs a budget: {costs}"
    over = {name: (cost, budgets[name]) for name, cost in costs.items() if cost > budgets[name]}
    assert not over, f"tools over their budget (tokens, budget): {over}"
