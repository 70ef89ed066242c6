"""What a list of tools takes on the wire. What it costs a model is in `bridgehead tools --cost`."""

from typing import Any

import msgspec

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
            for tool in result["tools"]:
                tool.pop("_meta", None)  # for clients; no model is shown it
                sizes[tool["name"]] = len(msgspec.json.encode(tool))
            if "nextCursor" not in result:
                return sizes
            params = {"cursor": result["nextCursor"]}


async def assert_carried(bridge: Bridge[Any], most_bytes: int) -> None:
    """Hold the whole list of a bridge's tools to what a conversation may carry, with its apps and without."""
    plain, with_apps = await tool_bytes(bridge), await tool_bytes(bridge, APPS)
    assert plain.keys() < with_apps.keys()
    for sizes in (plain, with_apps):
        assert sum(sizes.values()) + len(sizes) <= most_bytes, sizes
