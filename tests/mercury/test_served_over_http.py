"""The bridge over HTTP: as MCP_TRANSPORT says, and under `serve` with the tokens of a team."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import environment
from tests.support import endable
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

BUDGETS = "bob=0.0000001,ci=5/0.0000001"
"""Less than one call can cost: for a day, and for a month."""
ASK = {"messages": [{"role": "user", "content": "Of networks, in 30 words"}]}


@asynccontextmanager
async def served(api: Simulator, folder: Path, *command: str, **settings: str) -> AsyncIterator[str]:
    port = free_port()
    settings |= {"MCP_SERVER_PORT": str(port), "MCP_SERVER_HOST": "127.0.0.1"}
    with (folder / "stderr").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(*endable.words_for("bridgehead"), *command),
            env=environment(api.url, folder, **settings),
            stdin=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    try:
        await _listening(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        endable.send_from_loop(process, signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def _listening(port: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


async def test_the_official_client_talks_to_it_over_http(api: Simulator, tmp_path: Path) -> None:
    told: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    api.faults.next(Fault(chunk_delay=0.01))
    async with (
        served(api, tmp_path, "mercury", MCP_TRANSPORT="http") as url,
        Client(streamable_http_client(url)) as client,
    ):
        tools = await client.list_tools()
        result = await client.call_tool("mercury_chat_stream", ASK, progress_callback=on_progress)

    assert {"mercury_chat_stream", "mercury_decide"} <= {tool.name for tool in tools.tools}
    assert isinstance(result, types.CallToolResult)
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    assert block.text == api.text_of({**ASK, "model": "mercury-2"})
    assert "".join(told) == block.text


async def test_health_readiness_and_metrics_are_beside_it(api: Simulator, tmp_path: Path) -> None:
    async with (
        served(api, tmp_path, "mercury", MCP_TRANSPORT="http") as url,
        httpx2.AsyncClient(base_url=url.removesuffix("/mcp")) as http,
    ):
        async with Client(streamable_http_client(url)) as client:
            await client.call_tool("mercury_chat_completion", ASK)
        health, ready = (await http.get("/healthz")).json(), (await http.get("/readyz")).json()
        metrics = await http.get("/metrics")
        posted = await http.post("/healthz")
        elsewhere = await http.get("/metrics", headers={"Host": "evil.example"})

    assert (health, ready["status"]) == ({"status": "ok"}, "ready")
    assert ready["bridges"]["mercury"]["far_side"] is True
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'bridgehead_mercury_calls_total{bridge="mercury",model="mercury-2"} 1' in metrics.text
    assert (posted.status_code, elsewhere.status_code) == (405, 421)


async def run(api: Simulator, folder: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bridgehead", *arguments),
        env={**environment(api.url, folder), "COLUMNS": "200"},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0
    return out.decode()


async def spend(url: str, token: str, times: int) -> list[str]:
    """Call with a token; returns the code of each answer, "ok" where it is none."""
    codes = []
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        for _ in range(times):
            result = await client.call_tool("mercury_chat_completion", {**ASK, "max_tokens": 500})
            assert isinstance(result, types.CallToolResult)
            block = result.content[0]
            assert isinstance(block, types.TextContent)
            codes.append(json.loads(block.text)["error"]["code"] if result.is_error else "ok")
    return codes


async def test_each_token_has_its_day_and_its_month_and_its_line_in_the_usage(
    api: Simulator, tmp_path: Path
) -> None:
    tokens = {
        name: (await run(api, tmp_path, "token", "add", name)).split()[-1] for name in ("ann", "bob", "ci")
    }
    model = {"BRIDGEHEAD_AUTH": "on", "MERCURY_CLIENT_BUDGET_USD": "5", "MERCURY_CLIENT_BUDGETS": BUDGETS}
    async with served(api, tmp_path, "serve", "--bridges", "mercury", **model) as url:
        spent = {name: await spend(url, token, 3) for name, token in tokens.items()}
    rows = json.loads(await run(api, tmp_path, "mercury", "usage", "--by", "client", "--format", "json"))
    pages = [
        await run(api, tmp_path, "mercury", "usage", "--by", "client", "--format", form)
        for form in ("table", "chart", "csv")
    ]

    assert spent == {"ann": ["ok"] * 3, "bob": ["BUDGET_EXCEEDED"] * 3, "ci": ["BUDGET_EXCEEDED"] * 3}
    assert {row["client"]: (row["calls"], row["errors"]) for row in rows} == {
        "ann": (3, 0),
        "bob": (3, 3),
        "ci": (3, 3),
    }
    assert len(api.requests.to("/chat/completions")) == 3
    assert all(name in page for page in pages for name in tokens)
    written = "".join([*pages, json.dumps(rows), (tmp_path / "stderr").read_text()])
    assert not [token for token in tokens.values() if token in written]
