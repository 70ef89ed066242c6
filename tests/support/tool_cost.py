"""What a tool list costs: owns how a model's reading of it is counted.

A token is taken as four bytes of the encoded list, which is near enough to what models charge for JSON to
hold a budget with, and needs no tokenizer.
"""

from typing import Any

import msgspec

from bridgehead.commands.tools import BYTES_PER_TOKEN
from bridgehead.mcp import UI_EXTENSION, Bridge
from tests.support.checked import connect

APPS: dict[str, Any] = {"extensions": {UI_EXTENSION: {}}}


async def tool_bytes(bridge: Bridge[Any], capabilities: dict[str, Any] | None = None) -> dict[str, int]:
    """Return the bytes of each tool of a bridge in the list that a newest client reads."""
    async with connect(bridge, capabilities=capabilities) as client:
        sizes: dict[str, int] = {}
        params = None
        while True:
            result = await client.request("tools/list", params)
            sizes |= {tool["name"]: len(msgspec.json.encode(tool)) for tool in result["tools"]}
            if "nextCursor" not in result:
                return sizes
            params = {"cursor": result["nextCursor"]}


async def tool_costs(bridge: Bridge[Any]) -> dict[str, int]:
    """Return the tokens that each tool of a bridge costs in the list that a newest client reads."""
    return {name: -(-size // BYTES_PER_TOKEN) for name, size in (await tool_bytes(bridge)).items()}


async def assert_carried(bridge: Bridge[Any], most_bytes: int) -> None:
    """Hold the whole list of a bridge's tools to what a conversation may carry, with its apps and without."""
    plain, with_apps = await tool_bytes(bridge), await tool_bytes(bridge, APPS)
    assert plain.keys() < with_apps.keys()
    for sizes in (plain, with_apps):
        assert sum(sizes.values()) + len(sizes) <= most_bytes, sizes


async def assert_lean(bridge: Bridge[Any], budgets: dict[str, int]) -> None:
    """Hold each tool of a bridge to its budget of tokens; a tool without a budget is refused."""
    costs = await tool_costs(bridge)
    assert set(costs) == set(budgets), f"each tool needs a budget: {costs}"
    over = {name: (cost, budgets[name]) for name, cost in costs.items() if cost > budgets[name]}
    assert not over, f"tools over their budget (tokens, budget): {over}"
