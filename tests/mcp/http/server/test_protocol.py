"""Protocol: HTTP/1.1 on one connection, as clients of every manner speak it."""

import asyncio
import gc
import socket
from contextlib import suppress

import pytest
from httptools import HttpRequestParser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.mcp.http.message import Request
from bridgehead.mcp.http.message import Response as AnyResponse
from bridgehead.mcp.http.server import Server as HttpServer
from bridgehead.mcp.http.server.protocol import MAX_HEAD_BYTES, Http1Protocol
from tests.adversary.cases import CASES
from tests.fuzz.http_connection import check, replay
from tests.mcp.http.server.writing import following, wire, wired_call
from tests.support.http_client import Headers, Response
from tests.support.http_server import JSON_POST, Server, mirrored
from tests.support.messages import call, encode, initialize, request, stateless, text
from tests.support.waiting import PATIENCE


async def test_a_connection_serves_one_request_after_the_other(server: Server) -> None:
    response, writer = await server.http.begin(wired_call(server, "echo", 0, {"text": "0"}))
    await response.begin()
    for number in range(1, 20):
        assert text(await server.json(response)) == str(number - 1)
        writer.write(wired_call(server, "echo", number, {"text": str(number)}))
        response = await following(response)
    assert text(await server.json(response)) == "19"


async def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    data = b"".join(wired_call(server, "echo", n, {"text": str(n)}) for n in range(50))
    response, _ = await server.http.begin(data)
    await response.begin()
    for number in range(50):
        assert text(await server.json(response)) == str(number)
        if number < 49:
            response = await following(response)


async def test_a_client_that_hangs_up_behind_a_pipelined_request_cancels_its_call(server: Server) -> None:
    data = wired_call(server, "wait", 1) + wired_call(server, "echo", 2, {"text": "never"})
    response, _ = await server.http.begin(data)
    await server.work.began.acquire()
    await response.hang_up()
    await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
    assert server.work.cancelled == 1


async def test_a_large_request_behind_one_that_runs_waits_its_turn(server: Server) -> None:
    response, writer = await server.http.begin(wired_call(server, "steps", 1, {"n": 1}))
    await server.work.began.acquire()
    writer.write(wired_call(server, "echo", 2, {"text": "z" * 8_000_000}))
    filling = asyncio.create_task(writer.drain())
    assert await server.is_alive()
    assert not filling.done()
    server.work.go.release()
    await response.begin()
    assert text(await server.json(response)) == "counted to 1"
    assert len(text(await server.json(await following(response)))) == 8_000_000
    await filling


async def test_a_client_whose_request_came_slowly_is_watched_too(server: Server) -> None:
    data = wired_call(server, "wait", 1)
    response, writer = await server.http.begin(data[:-5])
    await asyncio.sleep(0.2)  # a slow client, not a wait for anything
    writer.write(data[-5:])
    await server.work.began.acquire()
    await response.hang_up()
    await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
    assert server.work.cancelled == 1


async def test_a_request_may_come_a_byte_at_a_time(server: Server) -> None:
    data = wired_call(server, "echo", 1, {"text": "drop by drop"})
    response, writer = await server.http.begin(b"")
    for byte in data:
        writer.write(bytes([byte]))
        await writer.drain()
    await response.begin()
    assert text(await server.json(response)) == "drop by drop"


async def test_a_target_with_scheme_and_authority_is_served_by_its_path(server: Server) -> None:
    data = wired_call(server, "echo", 1, {"text": "by proxy"})
    host = b"127.0.0.1:%d" % server.http.port
    whole = data.replace(b"POST /mcp", b"POST HTTP://%b/mcp" % host, 1)
    response, _ = await server.http.begin(whole.replace(b"Host: %b" % host, b"Host: evil.example", 1))
    await response.begin()
    assert text(await server.json(response)) == "by proxy"

    away, _ = await server.http.begin(data.replace(b"POST /mcp", b"POST http://evil.example/mcp", 1))
    await away.begin()
    assert away.status == 421


async def test_an_upgrade_that_the_server_does_not_know_is_passed_over(server: Server) -> None:
    wanted: Headers = {
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
        "HTTP2-Settings": "AAMAAABkAAQAoAAA",
    }
    server.checker.note_requests(initialize())
    response, _ = await server.http.begin(wire(server, encode(initialize()), wanted))
    await response.begin()
    assert "result" in await server.json(response)


@pytest.mark.parametrize(
    "data",
    [
        b"this is not HTTP\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: many\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_not_http_is_a_bad_request(server: Server, data: bytes) -> None:
    response, _ = await server.http.begin(data)
    await response.begin()
    assert response.status == 400
    assert response.headers["content-type"] == "text/plain"
    assert await response.body()
    assert await response.closed_by_server()
    assert await server.is_alive()


async def test_a_request_that_ends_within_its_head_is_a_bad_request(server: Server) -> None:
    response, writer = await server.http.begin(b"GET /mcp HTTP/1.1\r\nHost: local")
    writer.write_eof()

    answer = await following(response)

    assert (answer.status, await answer.body()) == (400, b"The request ended within its head")
    assert await answer.closed_by_server()


@pytest.mark.parametrize(
    "headers", [{f"X-{n}": "y" for n in range(200)}, {"X-Long": "y" * 100_000}, {"X" * 70_000: "y"}]
)
async def test_too_many_headers_are_refused(server: Server, headers: Headers) -> None:
    response, _ = await server.http.begin(wire(server, b"{}", headers))
    await response.begin()
    assert response.status == 431
    assert await server.is_alive()


async def test_a_header_that_never_ends_is_refused_before_it_is_kept(server: Server) -> None:
    response, writer = await server.http.begin(b"GET /mcp HTTP/1.1\r\nX-Endless: ")
    with suppress(ConnectionError):
        for _ in range(1000):
            writer.write(b"y" * 8192)
            await writer.drain()
    assert await response.closed_by_server()
    assert await server.is_alive()


async def test_a_large_body_that_comes_with_the_end_of_its_head_is_no_large_head(server: Server) -> None:
    asked = request("tools/call", call("echo", {"text": "z" * 200_000}), 7)
    session = await server.session()
    whole = wire(server, encode(asked), session)
    response, writer = await server.http.begin(whole[:30])
    assert await server.is_alive()
    writer.write(whole[30:])
    server.checker.note_requests(asked)
    await response.begin()
    assert len(text(await server.json(response))) == 200_000


async def test_a_target_that_is_too_long_is_refused(server: Server) -> None:
    response, _ = await server.http.begin(server.http.head("GET", "/" + "x" * 70_000, {}))
    await response.begin()
    assert response.status == 431


async def test_headers_behind_the_body_are_not_headers_of_the_request(server: Server) -> None:
    body = encode(initialize())
    head = server.http.head("POST", "/mcp", {**JSON_POST, "Transfer-Encoding": "chunked"})
    chunks = b"%x\r\n%b\r\n0\r\nOrigin: http://evil.example\r\n\r\n" % (len(body), body)
    response, _ = await server.http.begin(head + chunks)
    await response.begin()
    assert response.status == 200


@pytest.mark.parametrize("sent", [b"X-Trailer: y\r\n" * 10_000, b"X-Endless: " + b"y" * 200_000])
async def test_what_comes_behind_a_body_is_bounded(server: Server, sent: bytes) -> None:
    head = server.http.head("POST", "/mcp", {**JSON_POST, "Transfer-Encoding": "chunked"})
    response, writer = await server.http.begin(head + b"2\r\n{}\r\n0\r\n")
    writer.write(sent)
    await response.begin()
    assert response.status == 431
    assert await response.closed_by_server()


async def test_pipelined_upgrades_are_passed_over_without_end(server: Server) -> None:
    offer: Headers = {"Connection": "Upgrade", "Upgrade": "h2c", "Content-Length": "0"}
    count = 1_200
    response, _ = await server.http.begin(server.http.head("PUT", "/mcp", offer) * count)
    await response.begin()
    for _ in range(count - 1):
        assert response.status == 405
        response = await following(response)


async def test_a_path_may_be_written_with_percent_signs(server: Server) -> None:
    response = await server.post(initialize(), path="/%6dcp?query=ignored")
    assert "result" in await server.json(response)


@pytest.mark.parametrize("pieces", [1, 7])
async def test_requests_are_answered_though_rubbish_follows_them(server: Server, pieces: int) -> None:
    data = wired_call(server, "echo", 1, {"text": "one"}) + wired_call(server, "steps", 2, {"n": 1})
    data += b"rubbish\r\n\r\n"
    response, writer = await server.http.begin(b"")
    for start in range(0, len(data), len(data) // pieces + 1):
        writer.write(data[start : start + len(data) // pieces + 1])
        await writer.drain()
    await response.begin()
    assert text(await server.json(response)) == "one"
    await server.work.began.acquire()
    server.work.go.release()
    second = await following(response)
    assert text(await server.json(second)) == "counted to 1"
    third = await following(second)
    assert (third.status, await third.body()) == (400, b"Not a valid HTTP request")
    assert await third.closed_by_server()
    assert await server.is_alive()


async def test_rubbish_within_a_body_is_told_to_whoever_sent_it(server: Server) -> None:
    head = server.http.head("POST", "/mcp", {**JSON_POST, "Transfer-Encoding": "chunked"})
    for sent in (head + b"3\r\nabc\r\nrubbish\r\n", head + b"zz\r\n"):
        response, _ = await server.http.begin(sent)
        await response.begin()
        assert response.status == 400
        assert await response.closed_by_server()


# --- bodies and answers, as fast as the client reads -------------------------------------------------------


async def test_the_head_of_a_stream_comes_at_once(server: Server) -> None:
    session = await server.session()
    async with asyncio.timeout(PATIENCE):
        stream = await server.listen(session)
    assert stream.headers["content-type"] == "text/event-stream"


async def test_a_large_body_and_a_large_answer_pass(server: Server) -> None:
    data = wired_call(server, "echo", 1, {"text": "y" * 5_000_000})
    response, _ = await server.http.begin(data)
    await response.begin()
    assert len(text(await server.json(response))) == 5_000_000


@pytest.mark.parametrize("expecting", ["100-continue", "100-Continue"])
async def test_a_client_may_ask_to_send_its_body(server: Server, expecting: str) -> None:
    body = encode(initialize())
    data = wire(server, body, {"Expect": expecting})
    response, writer = await server.http.begin(data[: -len(body)])
    async with asyncio.timeout(PATIENCE):
        assert await response._reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"  # noqa: SLF001
    writer.write(body)
    await response.begin()
    server.checker.note_requests(initialize())
    assert "result" in await server.json(response)


async def test_an_old_client_gets_an_answer_that_ends_with_the_connection(server: Server) -> None:
    data = wired_call(server, "echo", 1, {"text": "old"}).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    response, _ = await server.http.begin(data)
    await response.begin()
    assert response.headers["connection"] == "close"
    assert text(await server.json(response)) == "old"
    assert await response.closed_by_server()


async def test_an_old_client_gets_a_stream_that_ends_with_the_connection(server: Server) -> None:
    message = stateless("tools/call", call("count", {"n": 2}, progress=1), 1)
    data = wire(server, encode(message), mirrored(message)).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    response, _ = await server.http.begin(data)
    await response.begin()
    assert "transfer-encoding" not in response.headers
    body = await response._reader.read()  # noqa: SLF001  (there is no other end than the connection's)
    assert body.count(b"data: {") == 3


async def test_a_client_may_ask_for_the_connection_to_be_closed(server: Server) -> None:
    body = encode(initialize())
    response, _ = await server.http.begin(wire(server, body, {"Connection": "close"}))
    await response.begin()
    assert await response.body()
    assert await response.closed_by_server()


async def test_an_answer_to_head_has_no_body(server: Server) -> None:
    response, _ = await server.http.begin(server.http.head("HEAD", "/mcp", {}))
    await response.begin()
    assert response.status == 405
    assert int(response.headers["content-length"]) > 0  # that of the body which GET would have
    ping = wired_call(server, "echo", 1, {"text": "next"})
    response._writer.write(ping)  # noqa: SLF001
    again = Response(response._reader, response._writer)  # noqa: SLF001
    await again.begin()
    assert text(await server.json(again)) == "next"


async def test_a_slow_reader_makes_the_server_wait_and_then_gets_everything(server: Server) -> None:
    session = await server.session()
    asked = request("tools/call", call("count", {"n": 50_000}, progress=1), 1)
    response = await server.post(asked, session)
    messages = await response.messages()
    assert [message["params"]["progress"] for message in messages[:-1]] == list(range(1, 50_001))


async def test_a_client_that_does_not_read_is_not_read_from_and_then_gets_everything(server: Server) -> None:
    count = 8_000
    data = b"".join(wired_call(server, "echo", number, {"text": "e" * 5_000}) for number in range(count))
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.setblocking(False)  # noqa: FBT003 - its name says what it sets
        loop = asyncio.get_running_loop()
        sending = loop.create_task(loop.sock_sendall(client, data))
        assert await server.is_alive()
        await asyncio.wait([sending], timeout=1)
        assert not sending.done()
        answers, rest = 0, b""
        async with asyncio.timeout(PATIENCE):
            while answers < count or b"e" * 5_000 not in rest:
                *whole, rest = (rest + await loop.sock_recv(client, 1024 * 1024)).split(b"HTTP/1.1 200 OK")
                answers += len(whole)
            await sending


# --- any bytes, in any pieces ------------------------------------------------------------------------------


# The cases are those of `make adversary`, which also asks other servers what they make of them. What
# `make fuzz` has found is tried in tests/fuzz.
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_does_not_depend_on_how_it_came(name: str) -> None:
    for seed in range(2):
        asyncio.run(check(CASES[name], seed))


@pytest.mark.parametrize("name", CASES)
def test_a_connection_leaves_nothing_behind_whatever_came(name: str) -> None:
    def count(kind: type) -> int:
        return sum(isinstance(one, kind) for one in gc.get_objects())

    gc.disable()
    gc.freeze()  # what others made is neither counted nor collected, now or later
    try:
        asyncio.run(replay([CASES[name]]))
        assert count(HttpRequestParser) == 0  # which does not wait for somebody who collects
        gc.collect()
        assert count(Http1Protocol) == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("padding", [0, 3000])
@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 431)])
def test_the_limit_of_a_head_is_exact_wherever_it_begins(padding: int, over: int, status: int) -> None:
    before = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (padding, b"x" * padding)
    value = b"y" * (MAX_HEAD_BYTES - len("/") - len("x-a") + over)
    head = b"GET / HTTP/1.1\r\nX-A: %b\r\n\r\n" % value

    whole = asyncio.run(replay([before + head]))
    cut = asyncio.run(replay([before, head[:5000], head[5000:]]))

    assert whole.statuses == cut.statuses == [200, status]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Take cases and change a few bytes: put some in, take some out, write over some."""
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(list(CASES.values())), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data)


@QUICK
@given(data=st.binary(max_size=400) | mutated(), seed=st.integers(0, 1000))
def test_no_bytes_break_a_connection(data: bytes, seed: int) -> None:
    asyncio.run(check(data, seed))


@pytest.mark.parametrize("line", [b"GET /mcp\r\n\r\n", b"GET /mcp HTTP/0.9\r\nHost: localhost\r\n\r\n"])
async def test_a_request_line_without_a_version_is_refused(server: Server, line: bytes) -> None:
    response, _ = await server.http.begin(line)
    await response.begin()

    assert response.status == 400
    assert await response.body() == b"The request line has no HTTP version: send HTTP/1.1"
    assert await response.closed_by_server()


async def test_a_request_that_was_answered_gives_up_its_body() -> None:
    """A connection to a far side keeps the context in which it was opened, and with it the request."""
    taken: list[Request] = []

    async def answer_later() -> AnyResponse:
        await asyncio.sleep(0)
        return AnyResponse(200, b"done")

    async def handle(request: Request) -> AnyResponse:
        taken.append(request)
        return await answer_later()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = HttpServer(handle)
        await serving.start(listener)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nlarge")
        async with asyncio.timeout(PATIENCE):
            await reader.readuntil(b"done")
            while taken[0].body:  # the response is written a moment before its task ends
                await asyncio.sleep(0)
        writer.close()
        await serving.stop()
