"""Requests: their methods by era and by what is offered, read without judgement, and whose they are."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw, UnsetType

from bridgehead.mcp import Bridge, Limits, ProtocolError, in_memory
from bridgehead.mcp.calls.params import META_PREFIX, CallToolParams
from bridgehead.mcp.connection import Client, Connection
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.errors import MalformedRequest
from bridgehead.mcp.jsonrpc import Message
from bridgehead.mcp.requests import METHODS, client_of, read
from bridgehead.mcp.revisions import NEWEST_HANDSHAKE, V2025_03_26, V2026_07_28
from tests.support.full_bridge import make_bridge

ONLY_HANDSHAKE = {
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
}
ONLY_STATELESS = {
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "skills/list",
    "skills/get",
}
ALWAYS = {"initialize", "ping", "server/discover", "subscriptions/listen"}
STATELESS = {META_PREFIX + "protocolVersion": "2026-07-28", META_PREFIX + "clientCapabilities": {}}


def params(**members: Any) -> Raw:
    return Raw(msgspec.json.encode(members))


def message(given: Raw | UnsetType) -> Message:
    return Message("2.0", params=given)


def read_request(name: str = "tools/list", meta: dict[str, Any] | None = None) -> Any:
    return read(1, name, message(params(_meta=meta) if meta else UNSET))


def test_the_parameters_are_those_of_the_method() -> None:
    request = read(7, "tools/call", message(params(name="echo", arguments={"a": 1}, unknown=True)))

    assert (request.id, request.problem) == (7, None)
    assert isinstance(request.params, CallToolParams)
    assert (request.params.name, bytes(request.params.arguments)) == ("echo", b'{"a":1}')


@pytest.mark.parametrize("given", [UNSET, Raw(b"null"), Raw(b"{}")])
def test_parameters_may_be_missing(given: Any) -> None:
    assert read(1, "tools/list", message(given)).problem is None


def test_what_is_wrong_with_parameters_is_kept_with_what_could_be_read() -> None:
    request = read(1, "tools/call", message(params(name=5, _meta=STATELESS)))

    assert isinstance(request.problem, ProtocolError)
    assert not isinstance(request.problem, MalformedRequest)
    assert request.problem.message.startswith("Invalid params for tools/call: ")
    assert client_of(request, Connection(Limits()), None).revision is V2026_07_28


def test_parameters_that_are_no_object_make_the_request_malformed() -> None:
    assert isinstance(read(1, "tools/list", message(Raw(b"[]"))).problem, MalformedRequest)


def test_an_unknown_method_has_none() -> None:
    assert read(1, "tools/eat", message(UNSET)).method is None


def test_a_client_is_who_shook_hands_before() -> None:
    connection = Connection(Limits())
    connection.client = Client(V2025_03_26, {}, {})

    assert client_of(read_request(), connection, None) is connection.client
    assert client_of(read_request(meta=STATELESS), connection, None).revision is V2026_07_28


@pytest.mark.parametrize("name", ["initialize", "ping"])
def test_before_a_handshake_only_these_may_come_without_a_version(name: str) -> None:
    assert client_of(read_request(name), Connection(Limits()), None).revision is NEWEST_HANDSHAKE
    with pytest.raises(MalformedRequest, match="Not initialized"):
        client_of(read_request("tools/list"), Connection(Limits()), None)


async def test_a_meta_without_a_version_before_a_handshake_is_told_what_it_lacks() -> None:
    client = in_memory.InMemoryClient(Dispatcher(Bridge[None]("early", "1")), NEWEST_HANDSHAKE, {})
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":1}}}'

    error = (await client.raw(message))["error"]

    assert error["code"] == -32602
    assert "protocolVersion" in error["message"]


def test_a_stateless_client_says_everything_in_each_request() -> None:
    info, level = {"name": "tests", "version": "1"}, "debug"
    meta = {**STATELESS, META_PREFIX + "clientInfo": info, META_PREFIX + "logLevel": level}
    client = client_of(read_request(meta=meta), Connection(Limits()), None)

    assert (client.info, client.log_level) == (info, level)
    for missing in STATELESS:
        some = {name: value for name, value in STATELESS.items() if name != missing}
        with pytest.raises(MalformedRequest, match=missing):
            client_of(
                read(1, "server/discover", message(params(_meta=some))), Connection(Limits()), V2026_07_28
            )


def test_a_version_that_is_not_spoken_is_refused_with_those_that_are() -> None:
    with pytest.raises(ProtocolError) as refused:
        client_of(
            read_request(meta={**STATELESS, META_PREFIX + "protocolVersion": "1999"}),
            Connection(Limits()),
            None,
        )

    assert refused.value.data == {"supported": ["2026-07-28"], "requested": "1999"}


MANY = b'{"x":[%b0]}' % (b"{}," * 100_000)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("initialize", b'{"capabilities":%b}' % MANY, "the parameters may have 65536 bytes"),
        ("tools/list", b'{"_meta":{"%bclientCapabilities":%b}}', "_meta may have 65536 bytes"),
    ],
)
def test_what_is_kept_with_a_session_or_a_call_may_not_be_large(name: str, given: bytes, told: str) -> None:
    request = read(1, name, message(Raw(given.replace(b"%b", META_PREFIX.encode(), 1).replace(b"%b", MANY))))

    assert isinstance(request.problem, MalformedRequest)
    assert request.problem.message == f"Invalid params for {name}: {told}"


def test_the_arguments_of_a_tool_may_be_large() -> None:
    request = read(1, "tools/call", message(Raw(b'{"name":"echo","arguments":%b}' % MANY)))

    assert request.problem is None
    assert isinstance(request.params, CallToolParams)
    assert bytes(request.params.arguments) == MANY


@pytest.mark.parametrize(
    "given",
    [
        b'{"name":"echo","inputResponses":{"x":[%b0]}}' % (b"{}," * 49_999),
        b'{"name":"echo","_meta":{"x":"%b"}}' % (b"x" * (65_536 - len('{"x":""}'))),
    ],
    ids=["as many values as are built", "as large as _meta may be"],
)
def test_what_is_exactly_as_large_as_it_may_be_is_read(given: bytes) -> None:
    assert read(1, "tools/call", message(Raw(given))).problem is None


def test_eras_have_the_methods_that_the_protocol_gives_them() -> None:
    assert {name for name, method in METHODS.items() if not method.stateless} == ONLY_HANDSHAKE
    assert {name for name, method in METHODS.items() if not method.handshake} == ONLY_STATELESS


def with_skills(bridge: Bridge[None]) -> Bridge[None]:
    """Declare that there are skills, which takes a folder otherwise."""
    bridge.extension("io.modelcontextprotocol/skills", handshake=False)
    return bridge


@pytest.mark.parametrize(
    ("bridge", "offered"),
    [(Bridge[None]("empty", "1", logging=False), ALWAYS), (with_skills(make_bridge()), set(METHODS))],
)
def test_a_bridge_offers_the_methods_for_what_it_has(bridge: Bridge[Any], offered: set[str]) -> None:
    server = Dispatcher(bridge)

    needs = {name: method.needs for name, method in METHODS.items()}
    assert {name for name, need in needs.items() if not need or getattr(server.bridge, need)} == offered
