"""Forwarding: a request that is forwarded arrives as it was, and nobody else gets in by that door."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridgehead.host.workers.forwarding import OWN_METRICS, WorkerEntrance, WorkerGone, Workers
from bridgehead.mcp.http.message import ClientGone, HeaderPairs, Request, Response, ResponseStream
from bridgehead.mcp.http.server import Server
from bridgehead.runtime.http import ConnectionBroken
from tests.host.conftest import Dial
from tests.support.tcp import serving
from tests.support.waiting import PATIENCE


class Client(Request):
    """A request as the first worker got it, and what its client is sent."""

    def __init__(self, method: str = "POST") -> None:
        headers = [
            (b"host", b"team.example"),
            (b"connection", b"close"),
            (b"x-bridgehead-client", b"http 6.6.6.6"),
        ]
        super().__init__(method, b"/mcp", "/mcp", b"a=b", headers)
        self.scheme, self.address, self.is_complete = "https", "203.0.113.9", True
        self.sent = Sent()

    async def read(self) -> bytes:
        return b""

    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        self.sent.status, self.sent.headers = status, list(headers)
        self.stream = self.sent
        return self.sent


class Sent(ResponseStream):
    """What a client is sent."""

    __slots__ = ("begun", "data", "headers")

    def __init__(self) -> None:
        super().__init__(0)
        self.headers: list[tuple[bytes, bytes]] = []
        self.data = b""
        self.begun = asyncio.Event()

    async def write(self, data: bytes) -> None:
        self.data += data
        self.begun.set()

    async def close(self) -> None:
        """Nothing is held open."""


class Echo:
    """An application that says what it was asked, in two pieces, and notes when its client leaves."""

    def __init__(self) -> None:
        self.request: Request | None = None
        self.left = asyncio.Event()
        self.breaks = False
        self.waits = False
        self.length: int | None = None
        self.rejected: list[tuple[str, str, int]] = []

    async def __call__(self, request: Request) -> ResponseStream:
        self.request = request
        body = await request.read()
        length = [] if self.length is None else [(b"content-length", b"%d" % self.length)]
        stream = await request.open_stream(201, [(b"x-own", b"1"), *length])
        await stream.write(body)
        if self.breaks:
            raise ValueError("in the middle")
        if self.waits:
            request.when_gone(self.left.set)
            await self.left.wait()
        await stream.write(b"!")
        return stream


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Workers, Echo]]:
    app = Echo()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as closed:
        ports = (closed.getsockname()[1], listener.getsockname()[1])
        closed.close()
        theirs = Workers(1, ports, b"secret")
        entrance = WorkerEntrance(
            theirs,
            app,
            {OWN_METRICS: lambda _request: Response(200, b"# HELP x X.\n")},
            lambda *what: app.rejected.append(what),
        )
        server = Server(entrance, shutdown_seconds=1)
        await server.start(listener)
        try:
            yield Workers(0, ports, b"secret"), app
        finally:
            await server.stop()


async def test_a_request_is_forwarded_on_behalf_of_its_client() -> None:
    client = Client()
    async with pair() as (workers, app):
        assert await workers.forward(1, client, b"body") is client.sent

    assert client.sent.status == 201
    assert (b"x-own", b"1") in client.sent.headers
    assert client.sent.data == b"body!"
    assert app.request is not None
    assert (app.request.address, app.request.scheme) == ("203.0.113.9", "https")
    assert (app.request.path, app.request.query) == ("/mcp", b"a=b")
    assert app.request.headers[b"host"] == b"team.example"


async def test_a_response_to_head_is_returned_without_a_body() -> None:
    client = Client("HEAD")
    async with pair() as (workers, app):
        app.length = 5
        async with asyncio.timeout(PATIENCE):
            await workers.forward(1, client, b"")

    assert (b"content-length", b"5") in client.sent.headers
    assert client.sent.data == b""


async def test_a_client_that_leaves_leaves_the_worker_too() -> None:
    client = Client()
    async with pair() as (workers, app), asyncio.timeout(PATIENCE):
        app.waits = True
        forwarding = asyncio.create_task(workers.forward(1, client, b"body"))
        await client.sent.begun.wait()
        client.hang_up()
        with pytest.raises(ClientGone):
            await forwarding
        await app.left.wait()


async def test_a_response_that_breaks_off_is_not_taken_for_a_whole_one() -> None:
    async with pair() as (workers, app):
        app.breaks = True
        with pytest.raises(ConnectionBroken):
            await workers.forward(1, Client(), b"body")


async def test_a_worker_that_is_gone_is_told_from_one_that_answers() -> None:
    async with pair() as (workers, _):
        with pytest.raises(WorkerGone):
            await workers.forward(0, Client(), b"")
        assert await workers.fetch_metrics(0) == b""
        assert await workers.fetch_metrics(1) == b"# HELP x X.\n"


async def test_a_worker_that_was_restarted_is_reached_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        workers = Workers(0, (0, listener.getsockname()[1]), b"secret")
        for _ in range(2):
            server = Server(WorkerEntrance(workers, Echo(), {}), shutdown_seconds=1)
            await server.start(listener.dup())
            client = Client()
            await workers.forward(1, client, b"body")
            assert client.sent.data == b"body!"
            await server.stop()


async def test_a_worker_that_dies_upon_a_request_is_gone_and_got_it_once() -> None:
    requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        for answer in (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""):
            await reader.readuntil(b"\r\n\r\n")
            requests += 1
            writer.write(answer)

    async with serving(serve) as port:
        workers = Workers(0, (0, port), b"secret")
        await workers.forward(1, Client(), b"")
        with pytest.raises(WorkerGone):
            await workers.forward(1, Client(), b"")

    assert requests == 2


async def test_without_the_secret_the_door_is_closed(dial: Dial) -> None:
    async with pair() as (workers, app):
        http = dial(workers.ports[1])
        for shown in (None, "", "wrong"):
            response = await http.request("POST", "/mcp", {"x-bridgehead-sibling": shown})
            assert response.status == 403
        assert app.request is None
        assert app.rejected == [("sibling", "127.0.0.1", 403)] * 3
