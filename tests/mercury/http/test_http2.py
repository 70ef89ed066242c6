"""HTTP/2 towards the API: one connection for many requests, each slow, cancelled or refused on its own."""

import asyncio
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from bridgehead.mercury.http.answer import MOST_KEPT
from bridgehead.mercury.http.pool import MOST_SENDS, Pool
from bridgehead.mercury.http.transport import ConnectFailed, ConnectionBroken
from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.http.asking import Peer, ask, echo, pool_of, until
from tests.mercury.process import bridge_process
from tests.support.http2_peer import PeerStream, ServeStream

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
STREAM = "mercury_chat_stream"
ASK = {"messages": [{"role": "user", "content": "Of wires, in 8 words"}]}


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
