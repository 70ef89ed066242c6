"""One connection: every form of a response, what is not one, and what a hostile peer may try."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from bridgehead.runtime.http import ConnectFailed, ConnectionBroken, Response
from bridgehead.runtime.http.connection import MAX_HEAD_BYTES, Connection, Request
from tests.runtime.http.peers import NOTHING, address, ask, ask_once, open_pool, repeating, saying
from tests.support.tcp import close_with_reset, serving
from tests.support.waiting import PATIENCE

TWO = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", b"200 hi"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n", b"200 hi!"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"200 until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\nx", b"201 x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"204 "),
    ],
    ids=["length", "chunked", "until closed", "informational", "empty"],
)
async def test_every_form_of_a_body_is_read(answer: bytes, expected: bytes) -> None:
    async with serving(saying(answer)) as port:
        assert await ask_once(address(port)) == expected


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    ],
    ids=["nothing", "half a head", "half a body", "another protocol", "an upgrade nobody asked for"],
)
async def test_what_is_not_a_whole_response_is_an_error(answer: bytes) -> None:
    async with serving(saying(answer)) as port:
        with pytest.raises(ConnectionBroken):
            await ask_once(address(port))


async def test_a_body_that_ends_with_the_connection_does_not_end_with_a_reset() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf of it")
        await asyncio.wait_for(got_head.wait(), 5)
        close_with_reset(writer)

    got_head = asyncio.Event()
    async with serving(serve) as port, open_pool(address(port)) as pool, pool.request("GET", "/") as response:
        got_head.set()
        with pytest.raises(ConnectionBroken):
            await response.read_body(1_000, 5.0)


async def test_a_response_to_head_has_no_body_whatever_its_length_says() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n")

    async with serving(serve) as port, open_pool(address(port)) as pool:
        assert [await ask(pool, "HEAD"), await ask(pool, "HEAD")] == [b"200 ", b"200 "]


@pytest.mark.parametrize(
    ("piece", "first"),
    [
        (b"x" * 4096, b"HTTP/1.1 200 "),
        (b"x-a: y\r\n" * 512, b"HTTP/1.1 200 OK\r\n"),
        (b"y" * 4096, b"HTTP/1.1 200 OK\r\nx-a: "),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 128, b""),
        (b"x" * 4096, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n5;"),
        (b"y" * 4096, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-a: "),
    ],
    ids=["status line", "headers", "one header", "informational", "chunk extension", "trailer"],
)
async def test_nothing_but_a_body_can_go_on_for_ever(piece: bytes, first: bytes) -> None:
    serve, sent = repeating(piece, first)
    async with serving(serve) as port:
        with pytest.raises(ConnectionBroken):
            await asyncio.wait_for(ask_once(address(port)), 10)

    assert sent() < 16_000_000  # what sockets buffer on the way; it went on until memory ended


async def test_a_head_that_is_too_large_is_refused_even_in_one_segment() -> None:
    head = b"HTTP/1.1 200 OK\r\n" + b"x-a: y\r\n" * (MAX_HEAD_BYTES // 8 + 1) + b"content-length: 0\r\n\r\n"
    async with serving(saying(head)) as port:
        with pytest.raises(ConnectionBroken, match="head of the response"):
            await ask_once(address(port))


async def test_two_responses_in_one_segment_are_not_one() -> None:
    second = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntwo"
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(TWO + second)
        await reader.read()

    async with serving(serve) as port, open_pool(address(port)) as pool:
        assert [await ask(pool), await ask(pool)] == [b"200 one", b"200 one"]

    assert connections == 2


async def test_a_response_that_nobody_asked_for_is_not_taken_for_the_next() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(TWO)
        await asyncio.wait_for(was_read.wait(), 5)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")
        await reader.read()  # the client closes it
        was_closed.set()

    was_read, was_closed = asyncio.Event(), asyncio.Event()
    async with serving(serve) as port, open_pool(address(port)) as pool:
        await ask(pool)
        was_read.set()
        await asyncio.wait_for(was_closed.wait(), 5)
        assert await ask(pool) == b"200 one"

    assert connections == 2


@pytest.mark.parametrize("header", [("x-a", "1\r\nx-b: 2"), ("x-a\n", "1"), ("x-a", "1\r")])
async def test_a_header_cannot_smuggle_another_one_in(header: tuple[str, str]) -> None:
    async with serving(saying(NOTHING)) as port, open_pool(address(port)) as pool:
        with pytest.raises(ValueError, match="line breaks"):
            async with pool.request("GET", "/", [header]):
                pass


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "TLS"])
async def test_nothing_is_written_to_a_connection_whose_end_has_just_been_read(
    certificate: ssl.SSLContext, *, is_secure: bool
) -> None:
    class Ending(Connection):
        """A connection on which a request is sent at the moment when its end is read."""

        def eof_received(self) -> None:
            super().eof_received()
            try:
                sending.set_result(self.send(post))
            except ConnectFailed as failure:
                sending.set_exception(failure)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Close at once."""

    post = Request("POST", "/")
    sending: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    async with serving(serve, certificate if is_secure else None) as port:
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: Ending("Host: localhost\r\n"),
            "localhost",
            port,
            ssl=ssl.create_default_context() if is_secure else None,
        )
        with pytest.raises(ConnectFailed):
            await asyncio.wait_for(sending, PATIENCE)
        transport.abort()

    assert not post.is_written


# --- a body in pieces --------------------------------------------------------------------------------------


async def read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readline()


async def test_a_request_and_its_response_stream_at_the_same_time() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"Transfer-Encoding: chunked" in head
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        async for chunk in read_chunks(reader):
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        writer.write(b"0\r\n\r\n")
        await reader.read()

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d" % number
            await asyncio.wait_for(echoes.get(), 5)  # the next piece goes out after this one came back

    echoes: asyncio.Queue[bytes] = asyncio.Queue()
    found = []
    async with (
        serving(serve) as port,
        open_pool(address(port)) as pool,
        pool.request("POST", "/", (), pieces()) as response,
    ):
        while piece := await response.read(5.0):
            found.append(piece)
            echoes.put_nowait(piece)

    assert found == [b"0", b"1", b"2"]


async def test_a_slow_taker_of_a_body_holds_its_source_back() -> None:
    given = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.wait_for(may_read.wait(), 30)
        async for _ in read_chunks(reader):
            pass
        writer.write(NOTHING)

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal given
        for _ in range(1024):
            given += 1
            yield b"x" * 0x8000

    may_read = asyncio.Event()
    async with serving(serve) as port, open_pool(address(port)) as pool:
        exchange = asyncio.create_task(pool.request("POST", "/", (), pieces()).__aenter__())
        before = -1
        while before != given:  # until it moves no more
            before = given
            await asyncio.sleep(0.2)
        may_read.set()
        response = await asyncio.wait_for(exchange, 30)

    assert before < 1024
    assert (response.status, given) == (200, 1024)


async def test_a_body_whose_source_fails_ends_the_request() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read())

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        raise RuntimeError("no more")

    seen: list[bytes] = []
    async with serving(serve) as port, open_pool(address(port)) as pool:
        with pytest.raises(ConnectionBroken, match="no more"):
            async with pool.request("POST", "/", (), pieces()):
                pass


# --- the response: no faster than it is read, and no longer than the reader waits ---------------------------


async def test_a_slow_reader_makes_the_sender_wait() -> None:
    serve, sent = repeating(
        b"2000\r\n" + b"x" * 0x2000 + b"\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    async with serving(serve) as port, open_pool(address(port)) as pool, pool.request("GET", "/") as response:
        before = -1
        while before != sent():  # until it moves no more
            before = sent()
            await asyncio.sleep(0.2)
        received = len(await response.read(5.0))
        while before == sent():
            received += len(await response.read(5.0))

    assert before < 16_000_000
    assert received > 0


async def test_a_read_waits_only_as_long_as_it_is_told() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")
        await reader.read()

    async with serving(serve) as port, open_pool(address(port)) as pool, pool.request("GET", "/") as response:
        assert await response.read(5.0) == b"x"
        with pytest.raises(TimeoutError):
            await response.read(0.05)


async def test_bytes_that_are_not_of_the_body_do_not_make_a_reader_wait_longer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n5;")
        while True:
            writer.write(b"y")
            await asyncio.sleep(0.01)

    async with serving(serve) as port, open_pool(address(port)) as pool, pool.request("GET", "/") as response:
        assert await response.read(5.0) == b"x"
        async with asyncio.timeout(5):
            with pytest.raises(TimeoutError):
                await response.read(0.2)


async def test_headers_are_kept_in_order_with_their_last_value_at_hand() -> None:
    answer = (
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nRetry-After: 3\r\nset-cookie: b\r\ncontent-length: 0\r\n\r\n"
    )
    async with (
        serving(saying(answer)) as port,
        open_pool(address(port)) as pool,
        pool.request("GET", "/") as response,
    ):
        assert [value for name, value in response.headers if name == b"set-cookie"] == [b"a", b"b"]
        assert (response.header("set-cookie"), response.header("retry-after")) == ("b", "3")
        assert response.header("etag") is None


async def test_a_trailer_is_not_a_header() -> None:
    answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx-late: 1\r\n\r\n"
    async with (
        serving(saying(answer)) as port,
        open_pool(address(port)) as pool,
        pool.request("GET", "/") as response,
    ):
        assert await response.read_body(10, 5.0) == b"x"
        assert response.header("x-late") is None
