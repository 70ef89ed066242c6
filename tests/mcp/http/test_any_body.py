"""Any body: whatever bytes are posted, the answer is HTTP, its JSON is JSON-RPC, and the server lives on."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.mcp import Limits
from tests.support.http_client import Headers
from tests.support.http_server import JSON_POST, Server, serving
from tests.support.messages import STATELESS, Checker, decode, encode
from tests.support.waiting import PATIENCE

SLOW = settings(max_examples=75, deadline=None, suppress_health_check=list(HealthCheck))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
METHODS = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/read",
    "prompts/get",
    "server/discover",
    "x",
]
near_messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0"]) | json_values,
        "id": st.integers() | st.text(max_size=5) | json_values,
        "method": st.sampled_from(METHODS) | json_values,
        "params": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["echo", "x"]) | json_values,
                "arguments": json_values,
                "_meta": json_values,
            },
        )
        | json_values,
        "result": json_values,
    },
)
bodies = (
    st.binary(max_size=300)
    | json_values.map(encode)
    | near_messages.map(encode)
    | st.lists(near_messages, max_size=3).map(encode)
)
header_bytes = st.binary(max_size=30).map(lambda value: bytes(b for b in value if b not in (0, 10, 13)))
headers = st.fixed_dictionaries(
    {},
    optional={
        "MCP-Protocol-Version": st.sampled_from([STATELESS, "2025-11-25", "2025-03-26"]) | header_bytes,
        "Mcp-Session-Id": header_bytes,
        "Mcp-Method": st.sampled_from(METHODS) | header_bytes,
        "Mcp-Name": header_bytes,
        "Last-Event-ID": header_bytes,
        "Accept": st.sampled_from(["*/*", "text/event-stream, application/json"]) | header_bytes,
        "Content-Type": st.just("application/json") | header_bytes,
        "Origin": header_bytes,
        "Host": st.just("localhost") | header_bytes,
    },
)
STATUSES = {200, 202, 400, 403, 404, 405, 406, 415, 421}


class Lane:
    """An event loop with one server for all examples of a test."""

    def __init__(self, runner: asyncio.Runner, server: Server) -> None:
        self._runner = runner
        self._server = server

    def send(self, method: str, extra: Headers, body: bytes) -> None:
        """Send one request and judge what comes back."""
        self._runner.run(self._sent(method, extra, body))

    async def _sent(self, method: str, extra: Headers, body: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            response = await self._server.http.request(method, "/mcp", {**JSON_POST, **extra}, body)
            assert response.status in STATUSES, response.status
            kind = response.headers.get("content-type")
            if kind == "application/json":
                judge(decode(await response.body()))
            elif kind == "text/event-stream":
                for message in await response.messages():
                    judge(message)
            elif kind != "text/plain":
                assert await response.body() == b""
            await self._server.http.close()

    def is_alive(self) -> bool:
        """Tell whether the server still works."""
        return self._runner.run(self._server.is_alive())


def judge(message: Any) -> None:
    """Tell whether this is JSON-RPC at least."""
    for item in message if isinstance(message, list) else [message]:
        assert item["jsonrpc"] == "2.0"
        assert ("result" in item) != ("error" in item)
        if "error" in item:
            Checker().check(item)


@contextmanager
def lane() -> Iterator[Lane]:
    with asyncio.Runner() as runner:
        context = serving(Limits(body_seconds=2.0, sessions=1_000_000))
        server = runner.run(context.__aenter__())
        try:
            yield Lane(runner, server)
        finally:
            runner.run(context.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def shared() -> Iterator[Lane]:
    """One server for all examples."""
    with lane() as one:
        yield one


@SLOW
@given(body=bodies)
def test_any_body_gets_a_valid_answer(shared: Lane, body: bytes) -> None:
    shared.send("POST", {}, body)


@SLOW
@given(body=bodies, extra=headers)
def test_any_headers_get_a_valid_answer(shared: Lane, body: bytes, extra: Headers) -> None:
    shared.send("POST", extra, body)


@SLOW
@given(extra=headers, method=st.sampled_from(["GET", "DELETE", "PUT", "OPTIONS"]))
def test_any_headers_without_a_body_get_a_valid_answer(shared: Lane, extra: Headers, method: str) -> None:
    shared.send(method, {**extra, "Content-Type": None}, b"")


def test_the_server_has_survived_all_that(shared: Lane) -> None:
    assert shared.is_alive()
