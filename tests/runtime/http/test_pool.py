"""A pool: connections kept and used again, replaced when they are stale, and never too many of them."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridgehead.runtime.http import BodyTooLarge, ConnectionBroken, fetch
from bridgehead.runtime.http import connection as connection_module
from tests.runtime.http.peers import NOTHING, address, ask, open_pool, saying
from tests.support.tcp import Serve, serving
from tests.support.waiting import until


class Keeping:
    """A server that keeps its connections, and tells of them."""

    def __init__(self) -> None:
        self.open: list[asyncio.StreamWriter] = []
        self.requests = 0
        self.closed_after = -1
        """After how many requests a connection is closed upon the next one."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.append(writer)
        served = 0
        while True:
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            if served == self.closed_after:
                return
            served += 1
            writer.write(NOTHING)


async def test_a_connection_is_used_again_unless_the_other_side_closed_it() -> None:
    server = Keeping()
    async with serving(server.serve) as port, open_pool(address(port)) as pool:
        for _ in range(3):
            await ask(pool)
        assert len(server.open) == 1
        server.open[0].close()
        await server.open[0].wait_closed()
        await asyncio.sleep(0)
        await ask(pool)

    assert len(server.open) == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_kept_connection_that_closes_without_a_byte_is_replaced_at_once(method: str) -> None:
    server = Keeping()
    server.closed_after = 1
    async with serving(server.serve) as port, open_pool(address(port)) as pool:
        assert await ask(pool, method) == b"200 "
        assert await ask(pool, method) == b"200 "

    assert (len(server.open), server.requests) == (2, 3)


async def test_a_new_connection_that_closes_without_a_byte_is_not_replaced() -> None:
    server = Keeping()
    server.closed_after = 0
    async with serving(server.serve) as port, open_pool(address(port)) as pool:
        with pytest.raises(ConnectionBroken):
            await ask(pool)

    assert server.requests == 1


async def test_a_request_that_a_kept_connection_had_for_long_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other side had it for longer than a close takes to cross it: it may have acted on it."""
    monkeypatch.setattr(connection_module, "STALE_SECONDS", 0.0)
    server = Keeping()
    server.closed_after = 1
    async with serving(server.serve) as port, open_pool(address(port)) as pool:
        await ask(pool)
        with pytest.raises(ConnectionBroken):
            await ask(pool, "POST", b"once")

    assert server.requests == 2


async def test_a_body_in_pieces_is_not_sent_twice() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"once"

    server = Keeping()
    server.closed_after = 1
    async with serving(server.serve) as port, open_pool(address(port)) as pool:
        await ask(pool)
        with pytest.raises(ConnectionBroken):
            async with pool.request("POST", "/", (), pieces()):
                pass


async def test_no_more_connections_are_made_than_allowed() -> None:
    now = most = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal now, most
        while await reader.readuntil(b"\r\n\r\n"):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.02)
            now -= 1
            writer.write(NOTHING)

    async with serving(serve) as port, open_pool(address(port), max_connections=2) as pool:
        assert await asyncio.gather(*(ask(pool) for _ in range(6))) == [b"200 "] * 6

    assert most == 2


async def test_a_request_that_is_left_early_takes_its_connection_with_it() -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")
        await reader.read()
        ended.set()

    async with serving(serve) as port, open_pool(address(port)) as pool:
        async with pool.request("GET", "/"):
            pass
        await asyncio.wait_for(ended.wait(), 5)


async def test_a_request_that_is_cancelled_before_its_response_ends_at_the_other_side() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        begun.set()
        await reader.read()
        ended.set()

    async with serving(serve) as port, open_pool(address(port)) as pool:
        asking = asyncio.create_task(ask(pool))
        await asyncio.wait_for(begun.wait(), 5)
        asking.cancel()
        await asyncio.wait_for(ended.wait(), 5)


async def test_a_connection_in_use_ends_with_its_exchange_once_the_pool_is_closed() -> None:
    server = Keeping()
    async with serving(server.serve) as port:
        async with open_pool(address(port)) as pool, pool.request("GET", "/") as response:
            await pool.close()
            await response.read_body(10, 5.0)
        await until(server.open[0].is_closing)


# --- small documents ---------------------------------------------------------------------------------------


async def test_a_small_document_is_fetched_with_its_query() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0]
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\n\r\n%b" % (len(line), line))

    async with serving(serve) as port:
        found = await fetch(f"http://127.0.0.1:{port}/keys?of=me", seconds=5, max_bytes=100)
        at_the_top = await fetch(f"http://127.0.0.1:{port}", seconds=5, max_bytes=100)

    assert (found.status, found.body) == (404, b"GET /keys?of=me HTTP/1.1")
    assert at_the_top.body == b"GET / HTTP/1.1"


@pytest.mark.parametrize(
    "serve",
    [
        saying(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n"),
        saying(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101),
    ],
    ids=["it says so", "it turns out so"],
)
async def test_a_document_above_its_limit_is_refused(serve: Serve) -> None:
    async with serving(serve) as port:
        with pytest.raises(BodyTooLarge):
            await fetch(address(port), seconds=5, max_bytes=100)


async def test_fetching_ends_in_time_even_if_bytes_keep_coming() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.01)

    async with serving(serve) as port:
        with pytest.raises(TimeoutError):
            await fetch(address(port), seconds=0.3, max_bytes=100_000)
