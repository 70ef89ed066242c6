"""A response: read as it comes, no faster than it is read, and no longer than the reader waits."""

import asyncio

import pytest

from tests.runtime.http.peers import address, open_pool, repeating, saying
from tests.support.tcp import serving


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
