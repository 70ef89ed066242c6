"""The caller: a tool knows who asks over HTTP and with which scopes, but never the credentials."""

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from bridgehead.mcp import Bridge, Caller, Context, DeclarationError
from bridgehead.mcp.http import application
from tests.support.checked import connect
from tests.support.http_client import HttpClient
from tests.support.http_server import JSON_POST, own_server
from tests.support.messages import STATELESS, call, encode, initialize, request, stateless

bridge: Bridge[None] = Bridge("shop", "1")


@bridge.tool
def who(caller: Caller | None, ctx: Context) -> str:
    """Say who asks."""
    if caller is None:
        return "nobody"
    assert ctx.caller == caller
    return f"{caller.name} {sorted(caller.scopes)} {caller.claims.get('team')} {sorted(caller.headers)}"


@bridge.tool(scopes="shop:buy")
async def buy() -> str:
    """Buy it."""
    return "bought"


@bridge.tool(seconds=0.01)
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


async def authenticate(headers: Mapping[str, str]) -> Caller | None:
    name = headers.get("authorization", "").removeprefix("Bearer ")
    return Caller(name, frozenset({"shop:buy"} if name == "ada" else ()), {"team": "red"})


async def post(tool: str, token: str) -> Any:
    """Call a tool over HTTP with a token."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = application(bridge, authenticate=authenticate)
        async with own_server(app, listener):
            http = HttpClient(listener.getsockname()[1])
            headers = {
                **JSON_POST,
                "Authorization": f"Bearer {token}",
                "MCP-Protocol-Version": STATELESS,
                "Mcp-Method": "tools/call",
                "Mcp-Name": tool,
                "X-Tenant": "7",
            }
            response = await http.request(
                "POST", "/mcp", headers, encode(stateless("tools/call", call(tool), 1))
            )
            body = await response.body()
            await http.close()
            return json.loads(body)["result"]


async def test_a_tool_knows_the_caller_without_its_credentials() -> None:
    text = (await post("who", "ada"))["content"][0]["text"]

    assert text.startswith("ada ['shop:buy'] red [")
    assert "x-tenant" in text
    assert "authorization" not in text


async def test_over_stdio_there_is_no_caller_and_everything_is_allowed() -> None:
    assert "caller" not in str(bridge.tools["who"].input_schema)
    async with connect(bridge) as client:
        assert await client.text("who") == "nobody"
        assert await client.text("buy") == "bought"


async def test_a_tool_with_scopes_refuses_a_caller_that_lacks_one() -> None:
    refused, allowed = await post("buy", "bob"), await post("buy", "ada")

    assert (refused["isError"], allowed.get("isError", False)) == (True, False)
    assert refused["content"][0]["text"] == "buy needs a token with the scope shop:buy."


async def test_a_tool_with_scopes_refuses_callers_whose_scopes_are_not_known() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = application(bridge, authenticate=authenticate)
        async with own_server(app, listener):
            http = HttpClient(listener.getsockname()[1])
            ada = {"Authorization": "Bearer ada"}
            stream = await http.request("GET", "/sse", {"Accept": "text/event-stream", **ada})
            opened = await stream.event()
            assert opened is not None
            answers = []
            for message in (initialize("2024-11-05"), request("tools/call", call("buy"))):
                path = opened.fields["data"]
                posted = await http.request("POST", path, {**JSON_POST, **ada}, encode(message))
                assert posted.status == 202
                answers.append(await stream.message())
            await http.close()

    assert answers[1]["result"]["content"][0]["text"] == "buy needs a token with the scope shop:buy."


async def test_a_call_that_takes_too_long_is_stopped() -> None:
    async with connect(bridge) as client:
        result = await client.call("wait")
    assert (result["isError"], result["content"][0]["text"]) == (
        True,
        "wait took longer than 0.01 s and was stopped.",
    )


def test_a_plain_function_cannot_be_stopped() -> None:
    with pytest.raises(DeclarationError, match="a plain def, which nothing can stop"):
        bridge.tool("Sleep.", name="sleep", seconds=1)(lambda: "")
