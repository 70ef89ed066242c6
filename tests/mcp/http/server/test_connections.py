"""Connections: what becomes of one when its client idles, its server is full, or its application fails."""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mcp.http import message
from bridgehead.mcp.http.server.connections import Connections
from bridgehead.mcp.http.server.protocol import MAX_DROPPED_BYTES
from tests.support.http_client import Headers, HttpClient, Response
from tests.support.http_server import JSON_POST, mirrored, serving
from tests.support.messages import call, encode, initialize, notification, stateless
from tests.support.posix import resource
from tests.support.waiting import PATIENCE, until

H2C: Headers = {
    "Connection": "Upgrade, HTTP2-Settings",
    "Upgrade": "h2c",
    "HTTP2-Settings": "AAMAAABkAAQAoAAA",
}


HALF = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n\r\n{"
)


async def test_an_idle_connection_is_closed() -> None:
    async with serving(settings={"keep_alive_seconds": 0}) as server:
        response = await server.post(initialize())
        await response.body()
        assert await response.closed_by_server()
        half, _ = await server.http.begin(b"POST /mcp HT")
        assert await half.closed_by_server()


async def test_a_connection_in_use_is_not_idle() -> None:
    async with serving(settings={"keep_alive_seconds": 0}) as server:
        session = await server.session()
        stream = await server.listen(session)
        idle, _ = await server.http.begin(b"")
        assert await idle.closed_by_server()
        server.bridge.changed.tools()
        assert (await stream.message())["method"] == "notifications/tools/list_changed"


async def test_a_connection_too_many_is_refused() -> None:
    async with serving(settings={"max_connections": 1}) as server:
        first = await server.post(initialize())
        assert first.status == 200
        await first.body()
        second = await server.http.request("GET")
        assert second.status == 503
        assert await second.body() == b"Too many connections"
        assert await second.closed_by_server()


async def test_one_address_cannot_have_all_connections() -> None:
    async with serving(settings={"max_connections": 10, "max_per_address": 2}) as server:
        first, _ = await server.http.begin(b"")
        await server.http.begin(b"")
        third = await server.http.request("GET")
        assert (third.status, await third.body()) == (503, b"Too many connections from your address")
        await first.hang_up()
        assert await server.is_alive()
    async with serving(settings={"max_per_address": 1, "unlimited": {"127.0.0.1"}}) as server:
        await server.http.begin(b"")
        assert await server.is_alive()


class Seat:
    """A connection of an address, as far as its place among the others matters."""

    running = None

    def __init__(self, room: Connections, address: str, *, is_idle: bool = True) -> None:
        self.address = address
        self.is_idle = is_idle
        self.is_gone = False
        self.transport: Any = self
        self.has_entered = room.enter(self) is None  # type: ignore[arg-type]

    def abort(self) -> None:
        self.is_gone = True


@pytest.fixture
async def room() -> Connections:
    async def answer(request: Any) -> Any:
        raise AssertionError

    return Connections(answer, asyncio.get_running_loop(), limit=6, on_reject=lambda *_: None)


async def test_a_newcomer_takes_the_oldest_unused_connection_of_the_address_with_most(
    room: Connections,
) -> None:
    flood = [Seat(room, "a") for _ in range(4)] + [Seat(room, "b") for _ in range(2)]
    room.note_use(flood[0])  # type: ignore[arg-type]

    assert Seat(room, "c").has_entered
    assert [seat.is_gone for seat in flood] == [False, True, False, False, False, False]


async def test_of_used_connections_only_an_idle_one_makes_room(room: Connections) -> None:
    flood = [Seat(room, "a", is_idle=number == 2) for number in range(6)]
    for seat in flood:
        room.note_use(seat)  # type: ignore[arg-type]

    assert Seat(room, "c").has_entered
    assert [seat.is_gone for seat in flood] == [False, False, True, False, False, False]
    assert not Seat(room, "c").has_entered  # every other one is at work


async def test_equals_do_not_displace_each_other(room: Connections) -> None:
    seats = [Seat(room, name) for name in "aabbcc"]
    for seat in seats:
        room.note_use(seat)  # type: ignore[arg-type]

    assert not Seat(room, "a").has_entered
    assert Seat(room, "d").has_entered  # the first of an address takes one of two


async def test_whoever_has_most_takes_only_a_place_of_its_own_that_was_never_used(room: Connections) -> None:
    flood = [Seat(room, "a") for _ in range(5)]
    other = Seat(room, "b")

    assert Seat(room, "a").has_entered
    assert flood[0].is_gone
    assert not other.is_gone


@given(moves=st.lists(st.tuples(st.sampled_from("abcde"), st.booleans(), st.booleans()), max_size=60))
async def test_no_flood_ever_locks_out_an_address_without_connections(
    moves: list[tuple[str, bool, bool]],
) -> None:
    async def answer(request: Any) -> Any:
        raise AssertionError

    room = Connections(answer, asyncio.get_running_loop(), limit=6, on_reject=lambda *_: None)
    seats: list[Seat] = []
    open_now: list[Seat] = []
    for address, is_used, is_idle in moves:
        seat = Seat(room, address, is_idle=is_idle or not is_used)
        if seat.has_entered:
            seats.append(seat)
            if is_used:
                room.note_use(seat)  # type: ignore[arg-type]
        open_now = [one for one in seats if not one.is_gone]
        assert len(open_now) <= 6
    counts = Counter(seat.address for seat in open_now)
    largest = [address for address, count in counts.items() if count == max(counts.values())]
    can_go = any(seat.is_idle for seat in open_now if seat.address in largest[:1])
    if len(largest) == 1 and counts[largest[0]] > 1 and can_go:
        assert Seat(room, "new").has_entered


async def test_line_breaks_do_not_keep_an_idle_connection() -> None:
    async with serving(settings={"keep_alive_seconds": 0.5}) as server:
        response, writer = await server.http.begin(b"")
        closing = asyncio.create_task(response.closed_by_server())
        while not closing.done():
            writer.write(b"\r\n")
            await asyncio.sleep(0.02)
        assert await closing


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"", ("idle", 0)),
        (b"POST /mcp HTTP/1.1\r\nHost: loc", ("slow_head", 408)),
        (HALF, ("slow_body", 408)),
        (b"rubbish\r\n\r\n", ("malformed", 400)),
        (b"GET /mcp HTTP/1.1\r\n" + b"X: y\r\n" * 200, ("head_size", 431)),
    ],
)
async def test_whoever_serves_is_told_once_of_what_is_refused(sent: bytes, told: tuple[str, int]) -> None:
    heard: list[tuple[str, str, int]] = []
    settings = {"keep_alive_seconds": 0.1, "on_reject": lambda *what: heard.append(what)}
    async with serving(settings=settings) as server:
        response, _ = await server.http.begin(sent)
        assert await response.closed_by_server()
    assert heard == [(told[0], "127.0.0.1", told[1])]


async def test_nobody_is_told_of_a_connection_that_was_used_and_idles() -> None:
    heard: list[Any] = []
    settings = {"keep_alive_seconds": 0.1, "on_reject": lambda *what: heard.append(what)}
    async with serving(settings=settings) as server:
        response = await server.post(initialize())
        assert await response.closed_by_server()
    assert heard == []


async def test_a_request_that_waits_behind_a_long_one_is_not_late() -> None:
    heard: list[Any] = []
    settings = {"keep_alive_seconds": 0.1, "on_reject": lambda *what: heard.append(what)}
    async with serving(settings=settings) as server:
        waiting = stateless("tools/call", call("steps", {"n": 1}), 1)
        body = encode(waiting)
        head: Headers = {**JSON_POST, **mirrored(waiting), "Content-Length": str(len(body))}
        first = server.http.head("POST", "/mcp", head) + body
        large = server.http.head("POST", "/mcp", {**JSON_POST, "Content-Length": "8000000"})
        response, writer = await server.http.begin(first)
        await server.work.began.acquire()
        writer.write(large + b"x" * 8_000_000)
        idle, _ = await server.http.begin(b"")
        assert await idle.closed_by_server()  # so it was looked
        server.work.go.release()
        await response.begin()
        assert response.status == 200
    assert [reason for reason, *_ in heard] == ["idle"]


def fail_at_once(_request: message.Request) -> message.Response:
    raise RuntimeError("too early")


async def fail_early(_request: message.Request) -> message.Response:
    raise RuntimeError("too early")


async def fail_late(request: message.Request) -> message.ResponseStream:
    stream = await request.open_stream(200, ())
    await stream.write(b"half of it")
    raise RuntimeError("too late")


@pytest.mark.parametrize("handler", [fail_at_once, fail_early])
async def test_a_handler_that_fails_before_its_response_is_an_internal_error(handler: Any) -> None:
    async with serving(settings={"wrap": lambda _: handler}, complaint="failed") as server:
        response = await server.http.request("GET")
        assert (response.status, await response.body()) == (500, b"")
        assert await response.closed_by_server()


async def test_a_handler_that_fails_within_its_response_does_not_make_it_look_whole() -> None:
    async with serving(settings={"wrap": lambda _: fail_late}, complaint="failed") as server:
        response = await server.http.request("GET")
        with pytest.raises(asyncio.IncompleteReadError):
            await response.body()


async def refuse_by_head(_request: message.Request) -> message.Response:
    return message.Response(401, b"who are you?")


async def test_an_answer_before_the_body_is_read_by_a_client_that_is_still_sending() -> None:
    async with serving(settings={"wrap": lambda _: refuse_by_head}) as server:
        size = 3_000_000  # more than the sockets hold, so that the client is still sending
        head = server.http.head("POST", "/mcp", {**JSON_POST, "Content-Length": str(size)})
        response, writer = await server.http.begin(head)
        writer.write(b"x" * size)
        async with asyncio.timeout(PATIENCE):
            await writer.drain()
        await response.begin()
        assert (response.status, await response.body()) == (401, b"who are you?")

        writer.write(server.http.head("GET", "/mcp", {}))
        again = Response(response._reader, response._writer)  # noqa: SLF001  (the same connection)
        await again.begin()
        assert again.status == 401


async def test_an_answer_before_the_body_of_the_last_request_closes_after_the_body() -> None:
    async with serving(settings={"wrap": lambda _: refuse_by_head}) as server:
        head = server.http.head("POST", "/mcp", {**JSON_POST, "Content-Length": "9", "Connection": "close"})
        response, writer = await server.http.begin(head)
        await response.begin()
        assert (response.status, await response.body()) == (401, b"who are you?")
        writer.write(b"123456789")
        assert await response.closed_by_server()


@pytest.mark.parametrize("rest", [b"x" * (MAX_DROPPED_BYTES + 1), b"no chunk"])
async def test_a_body_that_nobody_wants_may_not_be_endless_or_broken(rest: bytes) -> None:
    heard: list[Any] = []
    settings = {"wrap": lambda _: refuse_by_head, "on_reject": lambda *what: heard.append(what)}
    async with serving(settings=settings) as server:
        length: Headers = {"Transfer-Encoding": "chunked", "Content-Length": None}
        if len(rest) > MAX_DROPPED_BYTES:
            length = {"Content-Length": str(10 * len(rest))}
        response, writer = await server.http.begin(server.http.head("POST", "/mcp", {**JSON_POST, **length}))
        await response.begin()
        assert (response.status, await response.body()) == (401, b"who are you?")
        with suppress(ConnectionError):
            writer.write(rest)
            await writer.drain()
        assert await response.closed_by_server()  # with no second answer
    assert heard == []


async def test_a_client_that_waits_to_be_asked_for_its_body_is_not_waited_for() -> None:
    async with serving(settings={"wrap": lambda _: refuse_by_head}) as server:
        head = server.http.head(
            "POST", "/mcp", {**JSON_POST, "Content-Length": "9", "Expect": "100-continue"}
        )
        response, _ = await server.http.begin(head)
        await response.begin()
        assert (response.status, response.headers["connection"]) == (401, "close")
        assert await response.body() == b"who are you?"
        assert await response.closed_by_server()


async def begun(http: HttpClient, headers: Headers, body: bytes) -> tuple[Response, asyncio.StreamWriter]:
    head = http.head("POST", "/mcp", {**JSON_POST, **H2C, **headers})
    return await http.begin(head + body)


async def test_a_request_that_offers_an_upgrade_may_come_in_pieces() -> None:
    async with serving() as server:
        body = encode(initialize())
        server.checker.note_requests(initialize())
        response, writer = await begun(server.http, {"Content-Length": str(len(body))}, body[:10])
        for byte in body[10:]:
            writer.write(bytes([byte]))
            await writer.drain()
        await response.begin()
        assert "result" in await server.json(response)
        writer.write(server.http.head("PUT", "/mcp", {}))
        again = Response(response._reader, response._writer)  # noqa: SLF001  (the same connection)
        await again.begin()
        await server.refused(again, 405)


async def test_a_request_that_offers_an_upgrade_may_have_no_body() -> None:
    async with serving() as server:
        response = await server.http.request("GET", headers={**H2C, "Content-Length": None})
        await server.refused(response, 405)


async def test_a_request_that_offers_an_upgrade_must_say_how_long_it_is() -> None:
    async with serving() as server:
        body = encode(notification("x"))
        chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        response, _ = await begun(server.http, {"Transfer-Encoding": "chunked"}, chunked)
        assert await response.closed_by_server()
        assert await server.is_alive()


async def test_a_websocket_is_refused() -> None:
    async with serving() as server:
        offer: Headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Version": "13",
        }
        await server.refused(await server.http.request("GET", headers=offer), 405)


async def test_a_process_out_of_descriptors_says_so() -> None:
    heard: list[str] = []
    async with serving(settings={"on_reject": lambda reason, *_: heard.append(reason)}) as server:
        await server.session()
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, before[1]))
        try:
            await until(lambda: "descriptors" in heard)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert await server.is_alive()
