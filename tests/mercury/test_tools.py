"""The tool list: a committed snapshot, and what it costs a model to read."""

import json
from pathlib import Path

import pytest

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from tests.support.checked import connect
from tests.support.tool_cost import assert_carried

pytestmark = pytest.mark.asyncio(loop_scope="module")

SNAPSHOT = Path(__file__).with_name("tools.json")
MOST_BYTES = 16_000
"""What every conversation may carry of this bridge."""


async def test_the_tools_are_those_of_the_snapshot(tmp_path: Path) -> None:
    """After a change that is meant: `python -m tests.mercury.test_tools` writes the snapshot anew."""
    async with connect(make_bridge(MercurySettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path)}))) as client:
        listed = (await client.request("tools/list"))["tools"]

    assert listed == json.loads(SNAPSHOT.read_text(encoding="utf-8"))


async def test_a_conversation_carries_a_short_list(tmp_path: Path) -> None:
    bridge = make_bridge(MercurySettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path)}))

    await assert_carried(bridge, MOST_BYTES)


async def _write() -> None:
    async with connect(make_bridge(MercurySettings({}))) as client:
        listed = (await client.request("tools/list"))["tools"]
    SNAPSHOT.write_text(json.dumps(listed, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import asyncio

    asyncio.run(_write())
