"""The official Python client against the real command: the contract's exchanges, in every mode it has."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import mcp_types as types
import pytest
from mcp import ClientSession, MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from tests.aoc.data import Data
from tests.interop.python_peer import MODES, SECONDS, Peer, shake_hands
from tests.support.stdio_peer import ROOT

ALL = pytest.mark.parametrize("mode", MODES)
RUN = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}


@pytest.fixture(autouse=True)
def puzzle(data: Data) -> None:
    data.puzzle(1, "Count the gulls.", "Now count the herons.")


@asynccontextmanager
async def connected(data: Data, mode: str) -> AsyncIterator[Peer]:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "bridgehead", "aoc"],
        env={**os.environ, **data.environment()},
        cwd=ROOT,
    )
    if mode in HANDSHAKE_PROTOCOL_VERSIONS:
        async with (
            stdio_client(command) as streams,
            ClientSession(*streams, read_timeout_seconds=SECONDS) as session,
        ):
            await shake_hands(session, mode, elicits=False)
            yield session
    else:
        async with Client(stdio_client(command), mode=mode, read_timeout_seconds=SECONDS) as client:
            yield client


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@ALL
async def test_the_contracts_exchanges_hold_for_the_official_client(data: Data, mode: str) -> None:
    async with connected(data, mode) as peer:
        tools = [tool.name for tool in (await peer.list_tools()).tools]
        resources = [str(resource.uri) for resource in (await peer.list_resources()).resources]
        read = (await peer.read_resource("aoc://day01")).contents[0]
        fetched = await peer.call_tool("fetch_instruction", {"day": 1})
        recorded = await peer.call_tool("record_speed", RUN)
        board = await peer.call_tool("speed_leaderboard", {})
        with pytest.raises(MCPError) as missing:
            await peer.call_tool("fetch_instruction", {"day": 7})
        with pytest.raises(MCPError) as wrong:
            await peer.call_tool("fetch_instruction", {"day": 26})

    assert tools == ["fetch_instruction", "record_speed", "speed_leaderboard", "speed_history"]
    assert resources == ["aoc://day01"]
    assert isinstance(read, types.TextResourceContents)
    assert (
        read.text
        == text(fetched)
        == "# Day 1\n\n## Phase 1\nCount the gulls.\n\n## Phase 2\nNow count the herons."
    )
    assert text(recorded) == "Recorded gpt4 Day 1 Phase 1: 1250ms (avg: 1250ms)"
    assert text(board).startswith("1. gpt4: median 1250ms")
    assert missing.value.code == -1
    assert wrong.value.code == types.INVALID_PARAMS
    assert [e["llm"] for e in data.entries(1)] == ["gpt4"]
