"""Mirrored headers: a request whose headers say something else than its body is refused."""

import base64
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Raw

from bridgehead.mcp import Arguments, Bridge, Context, ProtocolError
from bridgehead.mcp.calls.params import META_PREFIX
from bridgehead.mcp.errors import HEADER_MISMATCH
from bridgehead.mcp.http.mirrored_headers import check_mirrored
from bridgehead.mcp.jsonrpc import Message
from bridgehead.mcp.methods.request import read

VERSION = "2026-07-28"
bridge: Bridge[None] = Bridge("mirrored", "1")


class Place(Arguments):
    region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]


@bridge.tool("Say where.")
def where(args: Place, ctx: Context[None]) -> str:
    return args.region


def check(method: str, params: dict[str, Any], **headers: bytes) -> None:
    body = {**params, "_meta": {META_PREFIX + "protocolVersion": VERSION}}
    request = read(1, method, Message("2.0", params=Raw(msgspec.json.encode(body))))
    named = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    own = {b"mcp-protocol-version": VERSION.encode(), b"mcp-method": method.encode()}
    check_mirrored(request, own | named, bridge)


def test_headers_that_say_the_same_pass() -> None:
    check("tools/list", {})
    check("tools/call", {"name": "echo", "arguments": {}}, mcp_name=b"echo")
    check("prompts/get", {"name": "p"}, mcp_name=b"p")
    check("resources/read", {"uri": "memo://ü"}, mcp_name=b"=?base64?" + encoded("memo://ü") + b"?=")


def encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())


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
