"""The diffusion app: a page watches an answer as it is refined and can stop it at the API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridgehead.mcp import UI_EXTENSION
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from tests.support.checked import CheckedClient, connect
from tests.support.waiting import until

APPS: dict[str, Any] = {"extensions": {UI_EXTENSION: {}}}
ASK = {"messages": [{"role": "user", "content": "What is a bridge?"}], "diffusing": True}
SLOW = 0.04


@asynccontextmanager
async def watched(
    folder: Path, capabilities: dict[str, Any], delay: float = 0.0
) -> AsyncIterator[tuple[CheckedClient, Simulator]]:
    async with Simulator(chunk_delay=delay) as api:
        settings = MercurySettings(
            {
                "MERCURY_API_KEY": "sk_0123456789abcdef",
                "MERCURY_API_URL": api.url,
                "BRIDGEHEAD_STATE_DIR": str(folder),
            }
        )
        async with connect(make_bridge(settings), capabilities=capabilities) as client:
            yield client, api


async def look(client: CheckedClient, **arguments: Any) -> Any:
    return (await client.call("mercury_diffusion_state", arguments))["structuredContent"]


async def test_every_state_of_an_answer_can_be_seen_afterwards(tmp_path: Path) -> None:
    async with watched(tmp_path, APPS, SLOW) as (client, _):
        result = await client.call("mercury_chat_stream", ASK)
        seen = await look(client, about="What is a bridge?", all=True)

    assert seen["status"] == "done"
    assert 1 < len(seen["states"]) <= 64
    assert seen["states"][-1][1] == result["structuredContent"]["content"]
    assert seen["metadata"] == result["structuredContent"]["metadata"]


async def test_a_page_sees_an_answer_grow_and_stops_it_at_the_api(tmp_path: Path) -> None:
    async with watched(tmp_path, APPS, SLOW) as (client, api):
        _, answer = client.start("tools/call", {"name": "mercury_chat_stream", "arguments": ASK})
        seen: Any = {"count": 0}
        while not seen.get("count"):
            seen = await look(client, about="What is a bridge?")
        stopped = (await client.call("mercury_diffusion_cancel", {"run": seen["run"]}))["structuredContent"]
        result = (await answer)["result"]
        await until(lambda: api.requests.to("/chat/completions")[0].aborted)

    assert (seen["status"], stopped["status"]) == ("running", "cancelled")
    assert result["isError"]
    assert '"STOPPED"' in result["content"][0]["text"]


async def test_the_run_of_nobody_is_an_answer_without_a_status(tmp_path: Path) -> None:
    async with watched(tmp_path, APPS) as (client, api):
        unknown = await look(client, run="0123456789abcdef")
        stopped = (await client.call("mercury_diffusion_cancel", {"run": "none"}))["structuredContent"]

        assert unknown == stopped == {"run": "", "status": None}
        assert api.requests.to("/chat/completions") == []


async def test_nothing_is_kept_for_a_client_without_apps(tmp_path: Path) -> None:
    async with watched(tmp_path, {}) as (client, _):
        result = await client.call("mercury_chat_stream", ASK)
        seen = await look(client, about="What is a bridge?")
        tools = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]

    assert "isError" not in result
    assert seen["status"] is None
    assert not [name for name in tools if "diffusion" in name]
