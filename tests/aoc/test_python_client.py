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


async def failed(peer: Peer, arguments: dict[str, int]) -> tuple[int | None, str]:
    """Call a tool that fails; return the code, where it is an error of the protocol, and the message."""
    try:
        result = await peer.call_tool("fetch_instruction", arguments)
    except MCPError as error:
        return error.code, str(error)
    assert result.is_error
    return None, text(result)


def text(result: types.CallToolResult) -> str:
    block = result.content[0]  # notes follow in a block of their own
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
        missing = await failed(peer, {"day": 7})
        wrong = await failed(peer, {"day": 26})

    assert tools[:2] == ["fetch_instruction", "record_speed"]
    assert resources == ["aoc://day01"] if mode == "2024-11-05" else ["aoc://leaderboard", "aoc://day01"]
    assert isinstance(read, types.TextResourceContents)
    assert (
        read.text
        == text(fetched)
        == "# Day 1\n\n## Phase 1\nCount the gulls.\n\n## Phase 2\nNow count the herons."
    )
    assert text(recorded) == "Recorded gpt4 Day 1 Phase 1: 1250ms (avg: 1250ms)"
    assert "– gpt4 (fewer than 5 attempts at a puzzle): 1.25 s per solved answer" in text(board)
    is_contract = mode == "2024-11-05"
    assert missing[0] == (-1 if is_contract else None)
    assert missing[1].startswith("Instruction file not found for day 7")
    assert wrong == (
        types.INVALID_PARAMS if is_contract else None,
        "Invalid params for fetch_instruction: day must be between 1 and 25 (got 26).",
    )
    assert [e["llm"] for e in data.entries(1)] == ["gpt4"]
