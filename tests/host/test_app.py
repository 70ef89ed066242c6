"""Application: what is refused before a bridge sees it, and what a client can put into headers and logs."""

import asyncio
import gc
from pathlib import Path

import pytest

from bridgehead.host.request import HostRequest
from bridgehead.mcp import socket_loop
from bridgehead.mcp.http.server.protocol import Http1Protocol, Http1Request
from tests.host.test_security import TOKENS, refusal
from tests.support.host_server import Host, bearer, hosting
from tests.support.http_client import Headers
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import call, encode, stateless
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_over_the_limit_is_refused(tmp_path: Path, *, declared: bool) -> None:
    settings = {"BRIDGEHEAD_BODY_LIMIT": "64kb"}
    async with hosting(tmp_path, settings, tokens=TOKENS) as host:
        headers: Headers = {**JSON_POST, **bearer(host.secrets["alice"])}
        if declared:
            response = await host.http.request("POST", "/mcp", headers, b"x" * 70_000)
        else:
            head = host.http.head("POST", "/mcp", {**headers, "Transfer-Encoding": "chunked"})
            response, _ = await host.http.begin(head + b"11170\r\n" + b"x" * 70_000 + b"\r\n0\r\n\r\n")
            await response.begin()
        assert response.status == 413
        await refusal(host, "body_size")


async def test_a_body_that_comes_too_slowly_is_given_up(tmp_path: Path) -> None:
    async with hosting(tmp_path, limits={"body_seconds": 0.2}) as host:
        head = host.http.head("POST", "/mcp", {**JSON_POST, "Content-Length": "100"})
        response, _ = await host.http.begin(head + b'{"jsonrpc"')
        await response.begin()
        assert response.status == 408
        await refusal(host, "slow_body")


async def test_a_body_is_not_read_for_a_caller_without_a_token(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        head = host.http.head("POST", "/mcp", {**JSON_POST, "Content-Length": "10000000"})
        response, _ = await host.http.begin(head + b"x" * 1_000_000)
        await response.begin()
        assert response.status == 401
        await refusal(host, "token_missing")


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/alpha/../../mcp",
        "/alpha/%2e%2e/beta/mcp",
        "//mcp",
        "/mcp/",
        "/mcp%00",
        "/MCP",
        "/alpha%2fmcp/x",
        "/%2e%2e%2fmetrics",
        "/readyz/../metrics",
        "/healthz%0d%0aX-Evil:1",
        "/.well-known/../tokens.json",
        "http://evil.example/mcp",
    ],
)
async def test_tricks_with_a_path_lead_nowhere(tmp_path: Path, path: str) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        response = await host.try_call(path, "alpha_echo", bearer(host.secrets["alice"]))
        await refusal(host, {400: "malformed", 404: "path", 421: "host"}[response.status])
        assert "x-evil" not in response.headers
        assert "root:" not in (await response.body()).decode()


async def test_what_a_client_sends_does_not_become_a_header_or_a_line_of_the_log(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens=TOKENS) as host:
        evil = 'x"\r\n\tX-Evil: 1'
        for name in ("X-Request-Id", "X-Forwarded-For", "Authorization", "Origin", "Mcp-Session-Id"):
            head = host.http.head("GET", "/mcp?\t%0d%0aX-Evil:1", {name: f"Bearer {evil}"})
            response, _ = await host.http.begin(head)
            await response.begin()
            assert "x-evil" not in response.headers, name
            assert response.status == 400
        await refusal(host, "malformed", 5)
        assert all("X-Evil: 1" not in line["event"] for line in host.log)


@pytest.mark.parametrize("leaves", ["after the answer", "while it is answered", "within its body"])
def test_a_request_that_is_over_leaves_nothing_to_the_garbage_collector(tmp_path: Path, leaves: str) -> None:
    """The collector runs seldom in a host, and a request may hold a body of 16 MB."""

    async def send(host: Host) -> None:
        message = stateless("tools/call", call("alpha_later", {"text": "x" * 300_000}))
        if leaves == "while it is answered":
            message = stateless("tools/call", call("alpha_wait", {}))
        body = encode(message)
        headers: Headers = {**JSON_POST, **mirrored(message), "Content-Length": str(len(body))}
        sent = body[:-1] if leaves == "within its body" else body
        response, writer = await host.http.begin(host.http.head("POST", "/mcp", headers) + sent)
        async with asyncio.timeout(PATIENCE):
            if leaves == "after the answer":
                await response.begin()
                await response.body()
            else:
                while not host.app.metrics.in_flight:
                    await asyncio.sleep(0.01)
            writer.transport.abort()
            while host.app.metrics.in_flight or host.app.metrics.connections:
                await asyncio.sleep(0.01)

    async def collect() -> set[type]:
        async with hosting(tmp_path) as host:
            await send(host)  # what is made once is made now
            gc.collect()
            gc.disable()
            try:
                await send(host)
                gc.set_debug(gc.DEBUG_SAVEALL)
                gc.collect()
                return {type(thing) for thing in gc.garbage}
            finally:
                gc.set_debug(0)
                gc.garbage.clear()
                gc.enable()

    # On the loop of the host: asyncio's own keeps what a cancelled timer refers to until its time has come.
    with asyncio.Runner(loop_factory=socket_loop) as runner:
        assert not runner.run(collect()) & {HostRequest, Http1Request, Http1Protocol}
