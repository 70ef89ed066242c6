"""An HTTP/2 connection as such: how it is made, and what becomes of requests when it ends."""

import asyncio
import ssl
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from bridgehead.mercury.http.pool import MOST_SENDS, Pool
from bridgehead.mercury.http.proxy import Proxy
from bridgehead.mercury.http.transport import ConnectFailed, ConnectionBroken
from tests.mercury.http.asking import Peer, ask, echo, pool_of, until
from tests.support.http2_peer import PeerStream
from tests.support.tcp import relay, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_when_the_other_side_goes_what_it_has_begun_ends_and_the_rest_is_sent_elsewhere(
    peer: Peer,
) -> None:
    may_end = asyncio.Event()

    async def serve(stream: PeerStream) -> None:
        if stream.connection is server.connections[0] and stream.id > 1:
            return  # never begun
        stream.head()
        await stream.send(b"begun, ")
        await may_end.wait()
        await stream.send(b"and ended")
        stream.end()

    async with peer(serve) as server, pool_of(server.url) as pool:
        first = asyncio.create_task(ask(pool))
        await until(lambda: len(server.streams) == 1)
        second = asyncio.create_task(ask(pool))
        await until(lambda: len(server.streams) == 2)
        server.connections[0].say_goodbye(last=1)
        await until(lambda: len(server.connections) == 2)
        third = asyncio.create_task(ask(pool))
        await until(lambda: len(server.streams) == 4)
        may_end.set()

        answers = [await one for one in (first, second, third)]
        assert answers == [(200, b"begun, and ended")] * 3
        assert [len(one.streams) for one in server.connections] == [2, 2]
        await until(lambda: server.connections[0].is_over)


async def test_a_server_that_goes_at_once_and_again_is_not_asked_for_ever(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        stream.connection.say_goodbye(last=0, code=ErrorCodes.ENHANCE_YOUR_CALM)

    async with peer(serve) as server, pool_of(server.url) as pool:
        with pytest.raises(ConnectFailed, match="ENHANCE_YOUR_CALM"):
            await ask(pool)
    assert len(server.connections) == MOST_SENDS


# --- what breaks -------------------------------------------------------------------------------------------


async def test_a_connection_that_breaks_ends_what_is_under_way_and_another_is_made(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        if len(server.connections) > 1:
            await stream.answer(b"again")
            return
        stream.head()
        await stream.send(b"half")
        stream.connection.writer.transport.abort()

    async with peer(serve) as server, pool_of(server.url) as pool:
        with pytest.raises(ConnectionBroken):
            await ask(pool)
        assert await ask(pool) == (200, b"again")


async def test_what_is_not_http2_is_an_error(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        stream.connection.writer.write(b"\x00\x00\x01\x06\x00\x00\x00\x00\x00!")  # a ping of one byte

    async with peer(serve) as server, pool_of(server.url) as pool:
        with pytest.raises(ConnectionBroken, match="not HTTP/2"):
            await ask(pool)


async def test_a_read_waits_only_as_long_as_it_is_told(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        stream.head()
        await stream.send(b"x")

    async with peer(serve) as server, pool_of(server.url) as pool:
        async with pool.request("GET", "/", {}, b"", 5.0) as response:
            assert await response.read(1.0) == b"x"
            with pytest.raises(TimeoutError):
                await response.read(0.05)
        await server.until_reset(server.streams[0], within=1)


async def test_a_connection_on_which_nothing_comes_any_more_is_not_used_again(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        if len(server.connections) == 1:
            stream.connection.is_deaf = True  # neither hears nor says anything from now on
            return
        await stream.answer(b"alive")

    async with peer(serve) as server, pool_of(server.url) as pool:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.1):
                await ask(pool)
        assert await ask(pool) == (200, b"alive")
        await until(lambda: server.connections[0].is_over)
        assert [one.is_over for one in server.connections] == [True, False]


async def test_a_server_that_says_nothing_when_it_is_reached_is_not_reached(
    tls: tuple[ssl.SSLContext, Path], certificate: Path
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    tls[0].set_alpn_protocols(["h2"])
    async with serving(serve, tls[0]) as port:
        pool = Pool(f"https://localhost:{port}/v1", 0.2, 4, http2=True)
        with pytest.raises(ConnectFailed, match="too long"):
            await ask(pool)
        await pool.close()


# --- ways there --------------------------------------------------------------------------------------------


async def test_where_the_other_side_does_not_speak_it_http1_is_spoken(
    tls: tuple[ssl.SSLContext, Path], certificate: Path
) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await reader.readexactly(2)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nold")

    tls[0].set_alpn_protocols(["http/1.1"])
    async with serving(serve, tls[0]) as port, pool_of(f"https://localhost:{port}/v1") as pool:
        assert [await ask(pool) for _ in range(2)] == [(200, b"old")] * 2
    assert [head.split(b"\r\n")[0] for head in heads] == [b"POST /v1/ask HTTP/1.1"] * 2


async def test_it_goes_through_a_proxy_as_a_tunnel(peer: Peer) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await relay(reader, writer, "127.0.0.1", int(head.split(b" ")[1].partition(b":")[2]))

    async with peer(echo) as server, serving(serve) as port:
        async with pool_of(server.url, proxy=Proxy("127.0.0.1", port)) as pool:
            assert await ask(pool, b"through") == (200, b"through")
        assert len(server.connections) == 1
