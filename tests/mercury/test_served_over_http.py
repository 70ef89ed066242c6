"""The bridge over HTTP, as MCP_TRANSPORT says, with the official Python client."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import environment
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASK = {"messages": [{"role": "user", "content": "Of networks, in 30 words"}]}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@asynccontextmanager
async def served(api: Simulator, folder: Path) -> AsyncIterator[str]:
    port = free_port()
    settings = {"MCP_TRANSPORT": "http", "MCP_SERVER_PORT": str(port), "MCP_SERVER_HOST": "127.0.0.1"}
    with (folder / "stderr").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bridgehead",
            "mercury",
            env=environment(api.url, folder, **settings),
            stderr=errors,
        )
    try:
        await _listening(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
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

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    api.faults.next(Fault(chunk_delay=0.01))
    async with served(api, tmp_path) as url, Client(streamable_http_client(url)) as client:
        tools = await client.list_tools()
        result = await client.call_tool("mercury_chat_stream", ASK, progress_callback=heard)

    assert {"mercury_chat_stream", "mercury_decide"} <= {tool.name for tool in tools.tools}
    assert isinstance(result, types.CallToolResult)
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    assert block.text == api.text_of({**ASK, "model": "mercury-2"})
    assert "".join(told) == block.text
