"""HTTP/2 towards the API: one connection for many requests, each slow, cancelled or refused on its own."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from bridgehead.mercury.http.answer import MOST_KEPT
from bridgehead.mercury.http.pool import MOST_SENDS, Pool
from bridgehead.mercury.http.proxy import Proxy
from bridgehead.mercury.http.transport import ConnectFailed, ConnectionBroken
from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import bridge_process
from tests.support.http2_peer import Http2Peer, PeerStream, ServeStream, http2_peer
from tests.support.tcp import certified, relay, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
STREAM = "mercury_chat_stream"
ASK = {"messages": [{"role": "user", "content": "Of wires, in 8 words"}]}
Peer = Callable[..., AbstractAsyncContextManager[Http2Peer]]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return certified(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def certificate(tls: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The certificate of the peer, which clients in this process trust meanwhile."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    return tls[1]


@pytest.fixture
def peer(tls: tuple[ssl.SSLContext, Path], certificate: Path) -> Peer:
    """Run a server around a function."""

    def one(serve: ServeStream, most_streams: int | None = None) -> AbstractAsyncContextManager[Http2Peer]:
        return http2_peer(serve, tls[0], most_streams=most_streams)

    return one


@asynccontextmanager
async def pool_of(url: str, most: int = 256, proxy: Proxy | None = None) -> AsyncIterator[Pool]:
    pool = Pool(url, 2.0, most, proxy, http2=True)
    try:
        yield pool
    finally:
        await pool.close()


async def ask(pool: Pool, body: bytes = b"{}") -> tuple[int, bytes]:
    """Ask for something and read the whole answer."""
    found = b""
    async with pool.request("POST", "/ask", {"X-Name": "some"}, body, 5.0) as response:
        while piece := await response.read(5.0):
            found += piece
        return response.status, found


async def echo(stream: PeerStream) -> None:
    await stream.answer(stream.body)


async def until(holds: Callable[[], object], within: float = 5.0) -> None:
    async with asyncio.timeout(within):
        while not holds():
            await asyncio.sleep(0.005)


def before(api: Simulator) -> ServeStream:
    """Serve HTTP/2 by asking the simulated API, which does not speak it."""
    pool = Pool(api.url, 2.0, 256)

    async def serve(stream: PeerStream) -> None:
        headers = {"authorization": stream.headers["authorization"], "content-type": "application/json"}
        path = stream.headers[":path"].removeprefix("/v1")
        try:
            async with pool.request(stream.headers[":method"], path, headers, stream.body, 60) as response:
                named = {name: response.header(name) for name in ("retry-after", "retry-after-ms")}
                stream.head(response.status, **{name: value for name, value in named.items() if value})
                while piece := await response.read(60):
                    await stream.send(piece)
                stream.end()
        except (ConnectionBroken, ConnectFailed):
            stream.refuse(ErrorCodes.INTERNAL_ERROR)

    return serve


# --- through the bridge ------------------------------------------------------------------------------------


async def test_every_call_gets_the_same_answer_over_one_connection(
    api: Simulator, peer: Peer, certificate: Path, tmp_path: Path
) -> None:
    settings = {"MERCURY_HTTP2": "1", "SSL_CERT_FILE": str(certificate)}
    async with peer(before(api)) as server, bridge_process(server.url, tmp_path, **settings) as client:
        chat = await client.call(CHAT, ASK)
        stream = await client.call(STREAM, ASK, progress=1)
        api.faults.next(Fault(kind="cut", after=2))
        cut = await client.error(STREAM, ASK)
        api.faults.next(Fault(kind="drop"), Fault(status=503), Fault(status=429, retry_after_ms="5"))
        again = await client.call(CHAT, ASK)
        api.faults.always(Fault(delay=10))
        slow = await client.error(CHAT, {**ASK, "timeout_ms": 200})
        api.faults.always(None)

    text = api.text_of({**ASK, "model": "mercury-2"})
    assert [result["content"][0]["text"] for result in (chat, stream, again)] == [text] * 3
    assert (cut["code"], cut["content"]) == ("CONNECTION_LOST", "You asked:")
    assert slow["code"] == "TIMEOUT"
    assert len(server.connections) == 1
    assert {one.headers[":authority"] for one in server.streams} == {f"localhost:{server.port}"}


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_a_call_that_is_cancelled_before_its_first_byte_is_cancelled_at_the_api_at_once(
    api: Simulator, peer: Peer, certificate: Path, tmp_path: Path, tool: str
) -> None:
    settings = {"MERCURY_HTTP2": "1", "SSL_CERT_FILE": str(certificate)}
    async with peer(before(api)) as server, bridge_process(server.url, tmp_path, **settings) as client:
        await client.call(CHAT, ASK)
        server.streams.clear()
        api.faults.next(Fault(delay=30))
        number, _ = client.start(tool, ASK)
        await until(lambda: server.streams and api.requests[-1].finished is None)
        cancelled_at = asyncio.get_running_loop().time()
        client.cancel(number)
        await server.until_reset(server.streams[0], within=5)

        assert server.streams[0].reset == ErrorCodes.CANCEL
        assert (server.streams[0].reset_at or 0) - cancelled_at < 0.1
        assert "isError" not in await client.call(CHAT, ASK)
        assert len(server.connections) == 1


async def test_a_stream_that_is_cancelled_in_the_middle_is_cancelled_at_the_api_at_once(
    api: Simulator, peer: Peer, certificate: Path, tmp_path: Path
) -> None:
    settings = {"MERCURY_HTTP2": "1", "SSL_CERT_FILE": str(certificate)}
    async with peer(before(api)) as server, bridge_process(server.url, tmp_path, **settings) as client:
        await api.requests.until(lambda journal: journal.to("/models")[0].finished)
        api.faults.always(Fault(chunk_delay=0.05))
        server.streams.clear()
        number, _ = client.start(
            STREAM, {"messages": [{"role": "user", "content": "in 900 words"}]}, progress=1
        )
        await client.progress_until(2)
        cancelled_at = asyncio.get_running_loop().time()
        client.cancel(number)
        await server.until_reset(server.streams[0], within=5)

        assert (server.streams[0].reset_at or 0) - cancelled_at < 0.1
        api.faults.always(None)


# --- many at once ------------------------------------------------------------------------------------------


async def test_fifty_requests_at_once_share_one_connection(peer: Peer) -> None:
    arrived = asyncio.Event()

    async def serve(stream: PeerStream) -> None:
        if len(server.streams) == 50:
            arrived.set()
        await arrived.wait()
        await stream.answer(stream.body)

    async with peer(serve) as server, pool_of(server.url) as pool:
        answers = await asyncio.gather(*(ask(pool, b"number %d" % n) for n in range(50)))

    assert answers == [(200, b"number %d" % n) for n in range(50)]
    assert [one.most_at_once for one in server.connections] == [50]


async def test_no_more_are_begun_on_a_connection_than_the_other_side_takes(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        await asyncio.sleep(0.02)
        await stream.answer(stream.body)

    async with peer(serve, 4) as server, pool_of(server.url, most=10) as pool:
        answers = await asyncio.gather(*(ask(pool, b"%d" % n) for n in range(30)))

    assert answers == [(200, b"%d" % n) for n in range(30)]
    assert [one.most_at_once for one in server.connections] == [4, 4, 2]


async def test_a_long_request_is_sent_as_the_other_side_takes_it(peer: Peer) -> None:
    long = bytes(range(256)) * 4096
    async with peer(echo) as server, pool_of(server.url) as pool:
        assert await ask(pool, long) == (200, long)

    assert server.streams[0].headers["content-length"] == str(len(long))
    assert server.streams[0].headers["x-name"] == "some"


async def test_a_slow_reader_makes_its_own_sender_wait_and_nobody_elses(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        if stream.body != b"endless":
            await stream.answer(b"x" * 1_000_000)
            return
        stream.head()
        while True:
            await stream.send(b"y" * 16_384)

    async with peer(serve) as server, pool_of(server.url) as pool:
        async with pool.request("POST", "/", {}, b"endless", 5.0) as response:
            await until(lambda: server.streams[0].sent == MOST_KEPT)
            assert [len(body) for _, body in await asyncio.gather(*(ask(pool) for _ in range(5)))] == [
                1_000_000
            ] * 5
            assert server.streams[0].sent == MOST_KEPT

            read = 0
            while read < 4 * MOST_KEPT:
                read += len(await response.read(1.0))
            await until(lambda: server.streams[0].sent > 4 * MOST_KEPT)
        await server.until_reset(server.streams[0], within=1)
        assert len(server.connections) == 1
        assert await ask(pool, b"and on") == (200, b"x" * 1_000_000)


# --- what the other side refuses ---------------------------------------------------------------------------


async def test_what_the_other_side_did_nothing_with_is_sent_again(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        if len(server.streams) == 1:
            stream.refuse()
        else:
            await stream.answer(b"now")

    async with peer(serve) as server, pool_of(server.url) as pool:
        assert await ask(pool) == (200, b"now")
    assert len(server.streams) == 2


async def test_it_is_not_sent_again_for_ever(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        stream.refuse()

    async with peer(serve) as server, pool_of(server.url) as pool:
        with pytest.raises(ConnectFailed, match="refused the request"):
            await ask(pool)
    assert len(server.streams) == MOST_SENDS


@pytest.mark.parametrize(("code", "name"), [(ErrorCodes.INTERNAL_ERROR, "INTERNAL_ERROR"), (999, "code 999")])
async def test_what_the_other_side_may_have_worked_on_is_not_sent_again(
    peer: Peer, code: int, name: str
) -> None:
    async def serve(stream: PeerStream) -> None:
        stream.refuse(code)

    async with peer(serve) as server, pool_of(server.url) as pool:
        with pytest.raises(ConnectionBroken, match=name):
            await ask(pool)
    assert len(server.streams) == 1


async def test_an_answer_that_comes_before_the_request_was_taken_is_an_answer(peer: Peer) -> None:
    async def serve(stream: PeerStream) -> None:
        await stream.answer(b"too much", 413)
        stream.refuse(ErrorCodes.NO_ERROR)

    async with peer(serve) as server, pool_of(server.url) as pool:
        assert await ask(pool) == (413, b"too much")
        assert await ask(pool) == (413, b"too much")
    assert len(server.connections) == 1


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
