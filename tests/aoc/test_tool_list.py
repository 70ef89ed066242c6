"""The list of tools: a committed snapshot, so that a change in it is a decision, and its cost for a model.

After a wanted change, `python -m tests.aoc.test_tool_list` writes the snapshot anew.
"""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bridgehead.aoc.bridge import make_bridge
from bridgehead.aoc.settings import AocSettings
from tests.support.checked import connect
from tests.support.tool_cost import assert_carried

SNAPSHOT = Path(__file__).with_name("tools.json")
MOST_BYTES = 9_400
"""What every conversation may carry of this bridge."""


async def listed() -> Any:
    with TemporaryDirectory() as folder:
        async with connect(make_bridge(AocSettings({"AOC_DATA_DIR": folder}))) as client:
            return (await client.request("tools/list"))["tools"]


async def test_the_tools_are_those_of_the_snapshot() -> None:
    assert await listed() == json.loads(SNAPSHOT.read_text(encoding="utf-8"))


async def test_a_conversation_carries_a_short_list(tmp_path: Path) -> None:
    bridge = make_bridge(AocSettings({"AOC_DATA_DIR": str(tmp_path)}))

    await assert_carried(bridge, MOST_BYTES)


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(asyncio.run(listed()), indent=2) + "\n", encoding="utf-8")
