"""Stateless: requests of the era without sessions, and the headers that repeat them."""

import asyncio
import base64
from typing import Any

import msgspec
import pytest

from bridgehead.mcp import Bridge, Limits, ProtocolError
from bridgehead.mcp.calls.params import META_PREFIX
from bridgehead.mcp.errors import HEADER_MISMATCH
from bridgehead.mcp.http.endpoint import Application, check_mirrored
from bridgehead.mcp.jsonrpc import Message
from bridgehead.mcp.requests import read
from tests.support.http_client import Headers
from tests.support.http_server import Server, mirrored, serving
from tests.support.messages import (
    STATELESS,
    SUBSCRIPTION,
    Json,
    call,
    decode,
    encode,
    request,
    stateless,
    text,
)
from tests.support.waiting import PATIENCE

ECHO = call("echo", {"text": "a"})


def sentinel(value: str) -> str:
    """Write a value as a header that can carry anything."""
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


async def code_of(server: Server, message: Json, headers: Headers, status: int = 400) -> int:
    """Send a message whose headers are changed, and return the error's code."""
    answer = await server.json(await server.stateless(message, headers), status)
    code: int = answer["error"]["code"]
    return code


@pytest.mark.parametrize(
    "headers",
    [
        {"MCP-Protocol-Version": None},
        {"MCP-Protocol-Version": "2025-11-25"},
        {"MCP-Protocol-Version": "1999-01-01"},
        {"Mcp-Method": None},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "Tools/Call"},
        {"Mcp-Method": sentinel("tools/call")},
        {"MCP-Protocol-Version": sentinel(STATELESS)},
        {"Mcp-Name": "sync_echo", "mcp-name": "echo"},
        {"Mcp-Name": None},
        {"Mcp-Name": "sync_echo"},
        {"Mcp-Name": "ECHO"},
        {"Mcp-Name": b"echo\xe4"},
        {"Mcp-Name": "=?base64?!!!?="},
        {"Mcp-Name": "=?base64?/w==?="},
        {"Mcp-Name": sentinel("sync_echo")},
        {"Mcp-Name": "=?BASE64?ZWNobw==?="},
    ],
)
async def test_a_header_that_does_not_repeat_the_body_is_a_mismatch(server: Server, headers: Headers) -> None:
    assert await code_of(server, stateless("tools/call", ECHO), headers) == -32020
    assert server.work.most == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-name": "echo", "Mcp-Name": None},
        {"Mcp-Name": "  echo  "},
        {"Mcp-Name": sentinel("echo")},
        {"Mcp-Session-Id": "ignored", "Last-Event-ID": "ignored/1"},
        {"Mcp-Param-Unknown": "ignored"},
    ],
)
async def test_a_header_may_be_written_in_other_ways(server: Server, headers: Headers) -> None:
    response = await server.stateless(stateless("tools/call", ECHO), headers)
    assert text(await server.json(response)) == "a"
    assert "mcp-session-id" not in response.headers


async def test_a_name_that_no_header_can_carry_comes_encoded(server: Server) -> None:
    response = await server.stateless(stateless("tools/call", call("größe")), {"Mcp-Name": sentinel("größe")})
    assert text(await server.json(response)) == "large"


async def test_resources_and_prompts_are_named_too(server: Server) -> None:
    read = stateless("resources/read", {"uri": "memo://today"})
    answer = await server.json(await server.stateless(read))
    assert answer["result"]["contents"][0]["text"] == "Meet in the middle."
    assert await code_of(server, read, {"Mcp-Name": "memo://other"}) == -32020
    prompt = stateless("prompts/get", {"name": "greet", "arguments": {"text": "hi"}})
    answer = await server.json(await server.stateless(prompt))
    assert answer["result"]["messages"][0]["content"]["text"] == "Greet with hi."
    assert await code_of(server, prompt, {"Mcp-Name": None}) == -32020


ROUTES: list[tuple[dict[str, Any], Headers, int]] = [
    ({}, {}, 200),
    ({"region": "eu"}, {"Mcp-Param-Region": "eu"}, 200),
    ({"region": "eu"}, {"MCP-PARAM-REGION": "eu"}, 200),
    ({"region": "größe"}, {"Mcp-Param-Region": sentinel("größe")}, 200),
    ({"region": "eu"}, {}, 400),
    ({"region": "eu"}, {"Mcp-Param-Region": "us"}, 400),
    ({"region": "eu"}, {"Mcp-Param-Region": "EU"}, 400),
    ({"region": None}, {}, 200),
    ({"region": None}, {"Mcp-Param-Region": "null"}, 400),
    ({}, {"Mcp-Param-Region": "eu"}, 400),
    ({"amount": 42}, {"Mcp-Param-Amount": "42"}, 200),
    ({"amount": 42}, {"Mcp-Param-Amount": "42.0"}, 200),
    ({"amount": -7}, {"Mcp-Param-Amount": "-7"}, 200),
    ({"amount": 42}, {"Mcp-Param-Amount": "43"}, 400),
    ({"amount": 42}, {"Mcp-Param-Amount": "many"}, 400),
    ({"amount": 42}, {"Mcp-Param-Amount": "nan"}, 400),
    ({"amount": 10}, {"Mcp-Param-Amount": "1_0"}, 400),
    ({"amount": 9007199254740991}, {"Mcp-Param-Amount": "9007199254740990"}, 400),
    ({"amount": 42}, {}, 400),
    ({"dry": True}, {"Mcp-Param-Dry": "true"}, 200),
    ({"dry": False}, {"Mcp-Param-Dry": "false"}, 200),
    ({"dry": True}, {"Mcp-Param-Dry": "True"}, 400),
    ({"dry": True}, {"Mcp-Param-Dry": "1"}, 400),
    ({"place": {"zone": "a"}}, {"Mcp-Param-Zone": "a"}, 200),
    ({"place": {"zone": "a"}}, {"Mcp-Param-Zone": "b"}, 400),
    ({"place": None}, {}, 200),
]


@pytest.mark.parametrize(("arguments", "headers", "status"), ROUTES)
async def test_headers_that_repeat_arguments_must_fit(
    server: Server, arguments: Json, headers: Headers, status: int
) -> None:
    message = stateless("tools/call", call("routed", arguments))
    response = await server.stateless(message, headers)
    answer = await server.json(response, status)
    if status == 200:
        assert "isError" not in answer["result"]
    else:
        assert answer["error"]["code"] == -32020


async def test_arguments_that_are_not_utf_8_are_a_parse_error(server: Server) -> None:
    message = stateless("tools/call", call("routed", {"region": "broken"}), 1)
    body = encode(message).replace(b"broken", b"\xff")
    answer = await server.json(await server.post(body, mirrored(message)), 400)
    assert (answer["error"]["code"], answer["id"]) == (-32700, None)


async def test_arguments_that_are_no_object_are_the_tools_own_problem(server: Server) -> None:
    message = stateless("tools/call", {"name": "routed", "arguments": [1]})
    assert (await server.json(await server.stateless(message)))["result"]["isError"] is True


async def test_an_unknown_version_is_refused_with_the_known_ones(server: Server) -> None:
    message = stateless("tools/list", version="2031-01-01")
    answer = await server.json(await server.stateless(message, {"MCP-Protocol-Version": "2031-01-01"}), 400)
    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"] == {"supported": [STATELESS], "requested": "2031-01-01"}


@pytest.mark.parametrize("meta", [None, {}, {"io.modelcontextprotocol/protocolVersion": STATELESS}, 7, []])
async def test_a_request_without_its_meta_is_a_bad_request(server: Server, meta: Any) -> None:
    message = request("tools/list", {} if meta is None else {"_meta": meta})
    headers: Headers = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/list"}
    answer = await server.json(await server.post(message, headers), 400)
    assert answer["error"]["code"] == -32602


async def test_a_method_that_does_not_exist_is_not_found(server: Server) -> None:
    for method in ("no/such/method", "initialize", "ping", "resources/subscribe"):
        assert await code_of(server, stateless(method), {}, 404) == -32601


async def test_wrong_parameters_are_an_answer_and_no_http_error(server: Server) -> None:
    assert await code_of(server, stateless("tools/call", call("unknown")), {}, 200) == -32602
    assert await code_of(server, stateless("tools/list", {"cursor": "x"}), {}, 200) == -32602


async def test_there_is_no_get_and_no_delete(server: Server) -> None:
    version: Headers = {"MCP-Protocol-Version": STATELESS}
    for response in (
        await server.listen(version),
        await server.http.request("DELETE", headers=version),
    ):
        await server.refused(response, 405)
        assert response.headers["allow"] == "POST"


async def test_a_missing_capability_is_a_bad_request(server: Server) -> None:
    assert await code_of(server, stateless("tools/call", call("ask")), {}) == -32021


@pytest.mark.parametrize("progress", [None, 1])
async def test_a_client_that_hangs_up_cancels_its_call(server: Server, progress: int | None) -> None:
    asking = asyncio.create_task(
        server.stateless(stateless("tools/call", call("wait", progress=progress), 1))
    )
    await server.work.began.acquire()
    if progress:
        assert (await (await asking).message())["method"] == "notifications/progress"
    await server.http.close()
    await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
    assert server.work.cancelled == 1
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_listen_stream_is_acknowledged_fed_and_ended_in_good_order(server: Server) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["memo://today"]}
    message = stateless("subscriptions/listen", {"notifications": wanted}, "l")
    stream = await server.stateless(message)
    acknowledged = await stream.message()
    server.checker.check(acknowledged)
    assert acknowledged["params"] == {"_meta": {SUBSCRIPTION: "l"}, "notifications": wanted}
    server.bridge.changed.prompts()
    server.bridge.changed.tools()
    server.bridge.changed.resource("memo://today")
    heard = [await stream.message(), await stream.message()]
    assert [item["method"].split("/", 1)[1] for item in heard] == ["tools/list_changed", "resources/updated"]
    server.app.end_streams()
    (end,) = await stream.messages()
    server.checker.check(end)
    assert end["result"]["_meta"][SUBSCRIPTION] == "l"
    assert await server.is_alive()


async def test_a_listen_stream_is_kept_alive_and_ends_with_its_client() -> None:
    async with serving(Limits(keep_alive_seconds=0.05)) as server:
        stream = await server.stateless(stateless("subscriptions/listen", {"notifications": {}}, 1))
        await stream.message()
        event = await stream.event()
        assert event is not None
        assert event.is_comment
        assert len(server.app.dispatcher.streams) == 1
        await stream.hang_up()
        async with asyncio.timeout(PATIENCE):
            while server.app.dispatcher.streams:
                await asyncio.sleep(0.01)


async def test_listen_streams_have_a_limit() -> None:
    async with serving(Limits(listen_streams=1)) as server:
        first = await server.stateless(stateless("subscriptions/listen", {"notifications": {}}, 1))
        await first.message()
        assert (
            await code_of(server, stateless("subscriptions/listen", {"notifications": {}}, 2), {}, 503)
            == -32000
        )


async def test_the_era_is_told_by_the_body_where_the_header_is_missing(server: Server) -> None:
    body = encode(stateless("tools/list"))
    assert decode(body)["params"]["_meta"]
    answer = await server.json(await server.post(body), 400)
    assert answer["error"]["code"] == -32020


def check(method: str, params: dict[str, Any], **headers: bytes) -> None:
    body = {**params, "_meta": {META_PREFIX + "protocolVersion": STATELESS}}
    asked = read(1, method, Message("2.0", params=msgspec.Raw(msgspec.json.encode(body))))
    named = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    own = {b"mcp-protocol-version": STATELESS.encode(), b"mcp-method": method.encode()}
    check_mirrored(asked, own | named, Bridge("mirrored", "1"))


def test_headers_that_say_the_same_pass() -> None:
    check("tools/list", {})
    check("tools/call", {"name": "echo", "arguments": {}}, mcp_name=b"echo")
    check("prompts/get", {"name": "p"}, mcp_name=b"p")
    check("resources/read", {"uri": "memo://ü"}, mcp_name=sentinel("memo://ü").encode())


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({}, "Mcp-Name is missing"),
        ({"mcp_name": b"other"}, "'other' does not match body value 'echo'"),
        ({"mcp_name": b"=?base64?!?="}, "not valid base64"),
        ({"mcp_name": b"ech\xf6"}, "invalid characters"),
        ({"mcp_name": b"echo", "mcp_method": b"tools/list"}, "Mcp-Method"),
        ({"mcp_name": b"echo", "mcp_protocol_version": b"2025-11-25"}, "MCP-Protocol-Version"),
    ],
)
def test_headers_that_say_something_else_are_refused(headers: dict[str, bytes], problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem) as refused:
        check("tools/call", {"name": "echo", "arguments": {}}, **headers)
    assert refused.value.code == HEADER_MISMATCH


# --- the application ---------------------------------------------------------------------------------------


async def test_a_path_that_leads_nowhere_says_so(server: Server) -> None:
    for path in ("/", "/mcp/", "/MCP", "/messages/x"):
        response = await server.http.request("POST", path, {"Content-Type": "application/json"}, b"{}")
        assert f"There is nothing at {path}" in await server.refused(response, 404)


async def test_the_end_of_its_streams_leaves_the_application_serving(server: Server) -> None:
    assert isinstance(server.app, Application)
    stream = await server.listen(await server.session())
    server.app.end_streams()

    assert await stream.messages() == []
    assert await server.is_alive()
