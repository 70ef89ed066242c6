"""Fairness: whatever one client sends, it keeps nobody else waiting, and costs no more than it sent."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.http.message import Request, Response
from bridgehead.mcp.http.server import Server
from bridgehead.mcp.http.server.connections import TURN_BYTES, Connections
from bridgehead.mcp.http.server.protocol import BODY_SLICE_BYTES, SLICE_BYTES, Http1Protocol
from tests.fuzz.http_connection import Mirror, Transport
from tests.support.waiting import PATIENCE, until

FLOOD = b"GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n"
PROBE = b"GET /probe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Counting:
    """A handler that counts a flood, and notes how far it was when somebody else was answered."""

    def __init__(self) -> None:
        self.flood = 0
        self.at_probe: list[int] = []

    async def __call__(self, request: Request) -> Response:
        if request.path == "/probe":
            self.at_probe.append(self.flood)
        else:
            self.flood += 1
        return Response(204)


@asynccontextmanager
async def serving(handler: Counting) -> AsyncIterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(handler)
        await server.start(listener)
        try:
            yield listener.getsockname()[1]
        finally:
            await server.stop()


def connect(connections: Connections) -> Http1Protocol:
    """Make a connection whose bytes come from the test, on a transport that only remembers."""
    connection, transport = Http1Protocol(connections), Transport(connections.loop, is_slow=False)
    transport.connection = connection
    connection.connection_made(transport)  # type: ignore[arg-type]
    return connection


async def test_a_pipelined_flood_lets_others_take_their_turn() -> None:
    handler = Counting()
    async with serving(handler) as port:
        _, flooding = await asyncio.open_connection("127.0.0.1", port)
        probe_reader, probing = await asyncio.open_connection("127.0.0.1", port)
        probing.write(PROBE.replace(b"Connection: close\r\n", b""))
        await probe_reader.readuntil(b"\r\n\r\n")
        flooding.write(FLOOD * 50_000)
        await until(lambda: handler.flood)
        before = handler.flood
        probing.write(PROBE)
        async with asyncio.timeout(PATIENCE):
            await probe_reader.read()
        waited = handler.at_probe[-1] - before
        flooding.transport.abort()
        probing.close()

    # A few turns of the loop, of 0.5 ms each: until the probe is written, until it is read, and its own.
    assert waited <= 2_000


async def test_many_that_pipeline_let_others_take_their_turn() -> None:
    handler = Counting()
    async with serving(handler) as port:
        probe_reader, probing = await asyncio.open_connection("127.0.0.1", port)
        floods = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        for _, flooding in floods:
            flooding.write(FLOOD * 100)
        await until(lambda: handler.flood > 1_000)
        before = handler.flood
        probing.write(PROBE)
        async with asyncio.timeout(PATIENCE):
            await probe_reader.read()
        waited = handler.at_probe[-1] - before
        for _, flooding in floods:
            flooding.transport.abort()
        probing.close()

    assert before < 10_000  # else there was nobody to wait for
    assert waited <= 2_000


@pytest.mark.parametrize("is_busy", [False, True])
async def test_who_asks_one_thing_has_the_answer_before_a_flood_goes_on(*, is_busy: bool) -> None:
    loop, order = asyncio.get_running_loop(), list[str]()

    async def handle(request: Request) -> Response:
        order.append("answered" if probe.transport.written else "waiting")  # type: ignore[attr-defined]
        return Response(204)

    connections = Connections(handle, loop)
    flooding, probe = connect(connections), connect(connections)
    flooding.data_received(FLOOD * 10)
    connections.turn_bytes = TURN_BYTES if is_busy else 0  # where it is busy, the probe waits in line too
    probe.data_received(FLOOD)
    await until(lambda: len(order) == 11)
    probe.connection_lost(None)
    flooding.connection_lost(None)

    # Where it is busy, the flood's second request begins before the probe has its turn.
    waiting = 3 if is_busy else 2
    assert order == ["waiting"] * waiting + ["answered"] * (11 - waiting)


async def test_of_a_crowd_little_is_parsed_before_it_is_served() -> None:
    """Each request that waits is memory, and the garbage collector stops everybody to look through it."""
    connections = Connections(Counting(), asyncio.get_running_loop())
    crowd = [connect(connections) for _ in range(1_000)]
    for connection in crowd:
        connection.data_received(FLOOD * (SLICE_BYTES // len(FLOOD)))

    most = 0
    while any(connection.queue or connection._backlog for connection in crowd):  # noqa: SLF001 - what waits
        most = max(most, sum(len(connection.queue) for connection in crowd))
        await asyncio.sleep(0)
    for connection in crowd:
        connection.connection_lost(None)

    assert most < 10 * len(crowd)  # of 49 each


async def test_one_client_after_another_leaves_one_timer_that_looks_at_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridgehead.mcp.http.server.connections.SWEEP_SECONDS", 0.01)

    class Looks(Accounts):
        times = 0

        def check_memory(self, more: int = 0) -> bool:
            self.times += 1
            return False

    looks = Looks(Limits())
    connections = Connections(Counting(), asyncio.get_running_loop(), unread=looks)
    for _ in range(200):
        connect(connections).connection_lost(None)
    last = connect(connections)
    await until(lambda: looks.times)
    seen = looks.times
    last.connection_lost(None)

    assert seen < 20  # not once for each of the 200


async def test_tiny_chunks_are_parsed_over_many_turns_and_no_more_is_read_meanwhile() -> None:
    mirror = Mirror()
    connection = connect(Connections(mirror, asyncio.get_running_loop()))
    transport = cast("Transport", connection.transport)
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.data_received(head + b"1\r\nx\r\n" * 40_000 + b"0\r\n\r\n")

    was_paused, parsed = transport.is_paused, connection._parser.chunks  # noqa: SLF001 - so far
    await until(lambda: mirror.requests)
    is_paused = transport.is_paused
    connection.connection_lost(None)

    assert parsed <= (SLICE_BYTES + BODY_SLICE_BYTES) / len(b"1\r\nx\r\n") + 1
    assert mirror.requests[0][3] == 40_000
    assert (was_paused, is_paused) == (True, False)


async def test_a_body_of_tiny_chunks_costs_what_it_weighs() -> None:
    class Reading(Counting):
        async def __call__(self, request: Request) -> Response:
            size = 0
            while piece := await request.read():
                size += len(piece)
            return Response(200, b"%d" % size)

    async with serving(Reading()) as port:
        few = await cpu_per_chunk(port, 40_000)
        many = await cpu_per_chunk(port, 320_000)

    assert many < 4 * few  # a cost that grows with the square would be eight times as much


async def cpu_per_chunk(port: int, count: int) -> float:
    """Send a body in chunks of one byte, and give the CPU seconds a chunk, with the client's own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.process_time()
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head + b"1\r\nx\r\n" * count + b"0\r\n\r\n")
    async with asyncio.timeout(PATIENCE):
        answer = await reader.readuntil(b"\r\n\r\n%d" % count)
    writer.close()
    assert b"200 OK" in answer
    return (time.process_time() - started) / count
