"""The official Python client against a host: in every era, with a token and without."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import LATEST_MODERN_VERSION

from tests.interop.host import addresses
from tests.interop.python_peer import SECONDS

MODES = ("legacy", "auto", LATEST_MODERN_VERSION)
Found = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    with addresses(Path(tmp_path_factory.mktemp("hosts"))) as found:
        yield found


@asynccontextmanager
async def connected(url: str, token: str, mode: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=SECONDS) as one,
    ):
        yield one


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["open host", "host with tokens"])
async def test_a_bridge_is_used_as_ever(hosts: Found, kind: str, mode: str) -> None:
    address, token = hosts[kind]
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with connected(f"{address}/mcp", token, mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        added = await client.call_tool("add", {"a": 2, "b": 3})
        counted = await client.call_tool("slow_count", {"n": 2}, progress_callback=hear)
        read = await client.read_resource("interop://motto")

    assert {"add", "slow_count"} <= tools
    assert added.structured_content == {"sum": 5}
    assert not counted.is_error
    assert heard
    assert read.contents


@pytest.mark.parametrize("mode", MODES)
async def test_everything_is_at_the_shared_url(hosts: Found, mode: str) -> None:
    address, _ = hosts["open host"]
    async with connected(address.replace("/interop", "/mcp"), "", mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}

    assert {"add", "other_echo"} <= tools


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_for_one_bridge_finds_only_that_one(hosts: Found, mode: str) -> None:
    address, token = hosts["host with tokens"]
    async with connected(address.replace("/interop", "/mcp"), token, mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        resources = [str(one.uri) for one in (await client.list_resources()).resources]
        with pytest.raises(MCPError, match="Unknown tool: other_echo"):
            await client.call_tool("other_echo", {"text": "x"})
        with pytest.raises(MCPError):
            await client.read_resource("other://note")

    assert not any(name.startswith("other") for name in tools)
    assert resources == ["interop://motto"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("token", ["", "bh_not_good"])
async def test_without_a_good_token_nobody_gets_in(hosts: Found, mode: str, token: str) -> None:
    address, _ = hosts["host with tokens"]
    with pytest.raises((httpx2.HTTPStatusError, MCPError, ExceptionGroup)):
        async with connected(f"{address}/mcp", token, mode) as client:
            await client.list_tools()
