"""A pool: connections kept and used again, never too many of them, and requests that are written once."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from bridgehead.runtime.http import BodyTooLarge, ConnectFailed, ConnectionBroken, Exchange, Pool, fetch
from bridgehead.runtime.http.connection import IDLE_SECONDS
from tests.runtime.http.peers import NOTHING, address, ask, ask_once, open_pool, saying
from tests.support.ports import free_port
from tests.support.tcp import Serve, serving
from tests.support.waiting import PATIENCE, until


class Keeping:
    """A server that keeps its connections, and tells of them."""

    def __init__(self) -> None:
        self.open: list[asyncio.StreamWriter] = []
        self.requests = 0
        self.answers = 1_000
        """How many requests a connection answers; it closes without a byte upon the next one."""
        self.works_seconds = 0.0
        """How long it works on a request before it closes."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.append(writer)
        served = 0
        while True:
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            if served >= self.answers:
                await asyncio.sleep(self.works_seconds)
                return
            served += 1
            writer.write(NOTHING)


async def test_a_connection_is_used_again() -> None:
    server = Keeping()
    async with serving(server.serve) as port, open_pool(address(port)) as pool:
        for _ in range(3):
            await ask(pool)

    assert len(server.open) == 1


# --- a kept connection that closes -------------------------------------------------------------------------

OVER_TLS_TOO = pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "TLS"])


@asynccontextmanager
async def reaching(server: Keeping, certificate: ssl.SSLContext | None) -> AsyncIterator[Pool]:
    """Run a server, with TLS if there is a certificate, and a pool to reach it."""
    async with serving(server.serve, certificate) as port:
        url = address(port) if certificate is None else f"https://localhost:{port}/v1"
        async with open_pool(url) as pool:
            yield pool


@OVER_TLS_TOO
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_request_goes_out_on_another_connection_when_the_kept_one_is_already_closed(
    certificate: ssl.SSLContext, method: str, *, is_secure: bool
) -> None:
    server = Keeping()
    async with (
        reaching(server, certificate if is_secure else None) as pool,
        serving(saying(NOTHING)) as other,
    ):
        await ask(pool)
        server.open[0].close()
        await server.open[0].wait_closed()
        await ask_once(address(other))  # when this was answered, the event loop has read the end as well
        assert await ask(pool, method) == b"200 "

    assert (len(server.open), server.requests) == (2, 2)


@OVER_TLS_TOO
@pytest.mark.parametrize("works_seconds", [0.0, 0.005, 0.15], ids=["at once", "after 5 ms", "after 150 ms"])
async def test_a_post_is_written_once_even_if_its_kept_connection_closes(
    certificate: ssl.SSLContext, works_seconds: float, *, is_secure: bool
) -> None:
    server = Keeping()
    server.answers, server.works_seconds = 1, works_seconds
    async with reaching(server, certificate if is_secure else None) as pool:
        await ask(pool, "POST")
        exchange = pool.request("POST", "/")
        with pytest.raises(ConnectionBroken):
            await enter(exchange)

    assert exchange.is_written
    assert (len(server.open), server.requests) == (1, 2)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_only_get_and_head_are_written_twice(method: str) -> None:
    server = Keeping()
    server.answers = 1
    async with reaching(server, None) as pool:
        await ask(pool)
        with pytest.raises(ConnectionBroken):
            await ask(pool, method)

    assert server.requests == 2


@OVER_TLS_TOO
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_get_on_a_kept_connection_that_closes_without_a_byte_is_sent_once_more(
    certificate: ssl.SSLContext, method: str, *, is_secure: bool
) -> None:
    server = Keeping()
    server.answers = 1
    async with reaching(server, certificate if is_secure else None) as pool:
        await ask(pool)
        assert await ask(pool, method) == b"200 "
        assert (len(server.open), server.requests) == (2, 3)
        server.answers = 0
        with pytest.raises(ConnectionBroken):
            await ask(pool, method)

    assert (len(server.open), server.requests) == (3, 5)


async def test_a_get_whose_answer_has_begun_is_not_sent_once_more() -> None:
    requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        for answer in (NOTHING, b"HTTP/1.1 2"):
            await reader.readuntil(b"\r\n\r\n")
            requests += 1
            writer.write(answer)

    async with serving(serve) as port, open_pool(address(port)) as pool:
        await ask(pool)
        with pytest.raises(ConnectionBroken):
            await ask(pool)

    assert requests == 2


async def test_a_new_connection_that_closes_without_a_byte_is_not_replaced() -> None:
    server = Keeping()
    server.answers = 0
    async with reaching(server, None) as pool:
        with pytest.raises(ConnectionBroken):
            await ask(pool)

    assert server.requests == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_body_in_pieces_is_not_sent_twice(method: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"once"

    server = Keeping()
    server.answers = 1
    async with reaching(server, None) as pool:
        await ask(pool)
        with pytest.raises(ConnectionBroken):
            await enter(pool.request(method, "/", (), pieces()))

    assert server.requests == 2


# --- whether anything was written --------------------------------------------------------------------------


async def enter(exchange: Exchange) -> int:
    """Send a request and return the status of its response."""
    async with exchange as response:
        return response.status


class Silent:
    """A server that takes requests and never answers."""

    def __init__(self) -> None:
        self.has_request = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.has_request.set()
        await reader.read()


async def test_a_request_that_is_answered_was_written() -> None:
    async with serving(saying(NOTHING)) as port, open_pool(address(port)) as pool:
        exchange = pool.request("POST", "/")
        assert not exchange.is_written
        assert await enter(exchange) == 200

    assert exchange.is_written


async def test_nothing_is_written_where_nothing_listens() -> None:
    async with open_pool(address(free_port())) as pool:
        exchange = pool.request("POST", "/")
        with pytest.raises(ConnectFailed):
            await enter(exchange)

    assert not exchange.is_written


async def test_nothing_is_written_to_a_server_whose_certificate_is_refused(
    tls: tuple[ssl.SSLContext, Path],
) -> None:
    server = Keeping()
    async with reaching(server, tls[0]) as pool:
        exchange = pool.request("POST", "/")
        with pytest.raises(ConnectFailed):
            await enter(exchange)

    assert not exchange.is_written
    assert server.requests == 0


async def test_nothing_is_written_of_a_request_that_cannot_be_encoded() -> None:
    server = Keeping()
    async with reaching(server, None) as pool:
        exchange = pool.request("POST", "/", [("x-a", "1\r\nx-b: 2")])
        with pytest.raises(ValueError, match="line breaks"):
            await enter(exchange)

    assert not exchange.is_written


async def test_nothing_is_written_of_a_request_that_is_cancelled_while_it_waits_for_a_connection() -> None:
    server = Keeping()
    async with serving(server.serve) as port, open_pool(address(port), max_connections=1) as pool:
        async with pool.request("GET", "/"):
            exchange = pool.request("POST", "/")
            waiting = asyncio.create_task(enter(exchange))
            await asyncio.sleep(0)  # it has begun to wait
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await ask(pool)  # the connection is free again

    assert not exchange.is_written
    assert server.requests == 2


async def test_a_request_that_times_out_after_it_went_out_was_written() -> None:
    server = Silent()
    limit = asyncio.timeout(None)

    async def ask_within_limit(exchange: Exchange) -> None:
        async with limit:
            await enter(exchange)

    async with serving(server.serve) as port, open_pool(address(port)) as pool:
        exchange = pool.request("POST", "/")
        asking = asyncio.create_task(ask_within_limit(exchange))
        await asyncio.wait_for(server.has_request.wait(), PATIENCE)
        limit.reschedule(0.0)  # long past
        with pytest.raises(TimeoutError):
            await asking

    assert exchange.is_written


async def test_a_request_that_is_cancelled_after_it_went_out_was_written() -> None:
    server = Silent()
    async with serving(server.serve) as port, open_pool(address(port)) as pool:
        exchange = pool.request("POST", "/")
        asking = asyncio.create_task(enter(exchange))
        await asyncio.wait_for(server.has_request.wait(), PATIENCE)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    assert exchange.is_written


# --- how many, and for how long ----------------------------------------------------------------------------


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


# --- idle connections --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "seconds", "connections"),
    [
        (b"", IDLE_SECONDS - 0.1, 1),
        (b"", IDLE_SECONDS, 2),
        (b"keep-alive: timeout=60, max=100\r\n", 58.0, 1),
        (b"keep-alive: timeout=60\r\n", 59.0, 2),
        (b"Keep-Alive: timeout=2\r\n", 1.0, 2),
        (b"keep-alive: max=5\r\n", IDLE_SECONDS, 2),
    ],
)
async def test_an_idle_connection_is_left_before_the_server_leaves_it(
    header: bytes, seconds: float, connections: int
) -> None:
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        with suppress(asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\n" + header + b"content-length: 0\r\n\r\n")

    async with serving(serve) as port, open_pool(address(port)) as pool:
        await ask(pool, "POST")
        (idle,) = pool._idle  # noqa: SLF001 - as if that time had passed
        idle.idle_since -= seconds
        await ask(pool, "POST")

    assert opened == connections
