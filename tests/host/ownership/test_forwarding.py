"""Forwarding: a request arrives as it was; only signed ones, made now and for this process, are answered."""

import asyncio
import itertools
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.host.ownership import forwarding
from bridgehead.host.ownership.forwarding import (
    CLIENT,
    END_SESSION,
    HOST,
    OWN_TASK,
    PEER,
    SIGNATURE_SECONDS,
    ClocksDiffer,
    OwnerGone,
    PeerEndpoint,
    Peers,
)
from bridgehead.host.ownership.owners import PROTOCOL, Owners, node_key
from bridgehead.mcp import TaskRecord
from bridgehead.mcp.http.message import ClientGone, HeaderPairs, Request, Response, ResponseStream
from bridgehead.mcp.http.server import Server
from bridgehead.runtime.http import ConnectionBroken
from tests.host.conftest import Dial
from tests.host.ownership.test_owners import entry
from tests.support.tcp import serving
from tests.support.waiting import PATIENCE, until


class Client(Request):
    """A request as the first replica got it, and what its client is sent."""

    def __init__(self, method: str = "POST", *more: tuple[bytes, bytes]) -> None:
        headers = [
            (b"host", b"team.example"),
            (b"connection", b"close"),
            (b"x-bridgehead-client", b"http 6.6.6.6"),
            *more,
        ]
        super().__init__(method, b"/mcp", "/mcp", b"a=b", headers)
        self.scheme, self.address, self.is_complete = "https", "203.0.113.9", True
        self.sent = Sent()

    async def read(self) -> bytes:
        return b""

    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        self.sent.status, self.sent.headers = status, list(headers)
        self.stream = self.sent
        return self.sent


class Sent(ResponseStream):
    """What a client is sent."""

    __slots__ = ("begun", "data", "headers")

    def __init__(self) -> None:
        super().__init__(0)
        self.headers: list[tuple[bytes, bytes]] = []
        self.data = b""
        self.begun = asyncio.Event()

    async def write(self, data: bytes) -> None:
        self.data += data
        self.begun.set()

    async def close(self) -> None:
        """Nothing is held open."""


class Echo:
    """An application that says what it was asked, in two pieces, and notes when its client leaves."""

    def __init__(self) -> None:
        self.request: Request | None = None
        self.left = asyncio.Event()
        self.breaks = False
        self.waits = False
        self.length: int | None = None
        self.rejected: list[tuple[str, str, int]] = []

    async def __call__(self, request: Request) -> ResponseStream:
        self.request = request
        body = await request.read()
        length = [] if self.length is None else [(b"content-length", b"%d" % self.length)]
        stream = await request.open_stream(201, [(b"x-own", b"1"), *length])
        await stream.write(body)
        if self.breaks:
            raise ValueError("in the middle")
        if self.waits:
            request.when_gone(self.left.set)
            await self.left.wait()
        await stream.write(b"!")
        return stream


US, SIBLING = "aaaaaaaaaaa0-3", "aaaaaaaaaaa1-3"
KEY, OTHER = b"k" * 32, b"o" * 32


class Directory:
    """What Redis holds of the replicas: the address of each, by its number."""

    def __init__(self, ports: tuple[int, ...]) -> None:
        names = [f"aaaaaaaaaaa{number}-3" for number in range(len(ports))]
        self._entries = {
            node_key(name): entry(name, f"127.0.0.1:{port}", KEY).encode()
            for name, port in zip(names, ports, strict=True)
        }

    async def call(self, _command: str, key: str) -> bytes | None:
        return self._entries.get(key)


def replica(index: int, *ports: int) -> Peers:
    directory: Any = Directory(ports)
    return Peers(Owners(f"aaaaaaaaaaa{index}-3", directory, (KEY,)), (KEY,))


async def answer_ok(_: Request) -> Response:
    return Response(200)


async def own_task(_: Request) -> Response:
    return Response(200, b"# HELP x X.\n")


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Peers, Echo, int]]:
    """Run the second of two replicas; gives what the first one reaches it with, and its port."""
    app = Echo()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as closed:
        ports = (closed.getsockname()[1], listener.getsockname()[1])
        closed.close()
        endpoint = PeerEndpoint(
            replica(1, *ports),
            app,
            {OWN_TASK: own_task},
            lambda *what: app.rejected.append(what),
        )
        server = Server(endpoint, shutdown_seconds=1)
        await server.start(listener)
        peers = replica(0, *ports)
        try:
            yield peers, app, ports[1]
        finally:
            await peers.close()
            await server.stop()


async def test_a_request_is_forwarded_on_behalf_of_its_client() -> None:
    client = Client()
    async with pair() as (replicas, app, _port):
        assert await replicas.forward(SIBLING, client, b"body") is client.sent

    assert client.sent.status == 201
    assert (b"x-own", b"1") in client.sent.headers
    assert client.sent.data == b"body!"
    assert app.request is not None
    assert (app.request.address, app.request.scheme) == ("203.0.113.9", "https")
    assert (app.request.path, app.request.query) == ("/mcp", b"a=b")
    assert app.request.headers[b"host"] == b"team.example"


async def test_a_response_to_head_is_returned_without_a_body() -> None:
    client = Client("HEAD")
    async with pair() as (replicas, app, _port):
        app.length = 5
        async with asyncio.timeout(PATIENCE):
            await replicas.forward(SIBLING, client, b"")

    assert (b"content-length", b"5") in client.sent.headers
    assert client.sent.data == b""


async def test_a_client_that_leaves_leaves_the_replica_too() -> None:
    client = Client()

    async def forward(replicas: Peers) -> int:
        with pytest.raises(ClientGone):
            await replicas.forward(SIBLING, client, b"body")
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()  # whoever awaits it goes on

    async with pair() as (replicas, app, _port):
        app.waits = True
        forwarding = asyncio.create_task(forward(replicas))
        await until(client.sent.begun.is_set)
        client.hang_up()
        await until(forwarding.done)
        assert await forwarding == 0
        await until(app.left.is_set)


async def test_a_request_that_is_given_up_here_is_not_taken_for_a_client_that_left() -> None:
    client = Client()
    async with pair() as (replicas, app, _port):
        app.waits = True
        forwarding = asyncio.create_task(replicas.forward(SIBLING, client, b"body"))
        await until(client.sent.begun.is_set)
        forwarding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await forwarding
        await until(app.left.is_set)


async def test_headers_that_are_for_one_connection_end_there() -> None:
    shown = [(b"x-kept", b"1"), (b"content-length", b"99"), (b"keep-alive", b"9"), (b"upgrade", b"h2c")]
    shown += [(b"transfer-encoding", b"chunked"), (b"expect", b"100-continue"), (b"te", b"trailers")]
    client, asked = Client("POST", *shown), list[bytes]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ndate: today\r\nconnection: close\r\nx-own: date\r\n")
        writer.write(b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")

    async with serving(answer) as port:
        await replica(0, 0, port).forward(SIBLING, client, b"body")

    lines = set(asked[0].lower().split(b"\r\n"))
    assert {b"x-kept: 1", b"content-length: 4", b"x-bridgehead-host: team.example"} <= lines
    assert not {b"%s: %s" % pair for pair in shown[1:]} & lines
    assert not {b"connection: close", b"x-bridgehead-client: http 6.6.6.6"} & lines
    assert (client.sent.headers, client.sent.data) == ([(b"x-own", b"date")], b"hi")


async def test_a_response_that_breaks_off_is_not_taken_for_a_whole_one() -> None:
    async with pair() as (replicas, app, _port):
        app.breaks = True
        with pytest.raises(ConnectionBroken):
            await replicas.forward(SIBLING, Client(), b"body")


async def test_a_replica_that_is_gone_is_told_from_one_that_answers() -> None:
    async with pair() as (replicas, _app, _port):
        with pytest.raises(OwnerGone):
            await replicas.forward(US, Client(), b"")
        assert await replicas.ask(US, OWN_TASK) == b""
        assert await replicas.ask(SIBLING, OWN_TASK) == b"# HELP x X.\n"
        assert await replicas.ask(SIBLING, "/unknown") == b""


@pytest.mark.parametrize("is_there", [False, True])
async def test_the_address_of_a_process_that_is_gone_is_forgotten(*, is_there: bool) -> None:
    """Whether nobody is there any more, or another process, which does not answer in its place."""
    async with pair() as (replicas, app, port):
        known = replicas.owners._known  # noqa: SLF001 - otherwise Redis tells it
        known[THEIRS] = f"127.0.0.1:{port if is_there else 1}"
        with pytest.raises(OwnerGone):
            await replicas.forward(THEIRS, Client(), b"")

        assert app.request is None
        assert await replicas.owners.find(THEIRS) is None
        with pytest.raises(OwnerGone) as nobody:
            await replicas.forward(THEIRS, Client(), b"")
        assert nobody.value.__cause__ is None  # nobody was asked
        assert await replicas.ask(THEIRS, OWN_TASK) == b""


async def test_a_replica_that_was_restarted_is_reached_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ports = (0, listener.getsockname()[1])
        replicas = replica(0, *ports)
        for _ in range(2):
            server = Server(PeerEndpoint(replica(1, *ports), Echo(), {}), shutdown_seconds=1)
            await server.start(listener.dup())
            client = Client()
            await replicas.forward(SIBLING, client, b"body")
            assert client.sent.data == b"body!"
            await server.stop()


async def test_a_replica_that_dies_upon_a_request_is_gone_and_got_it_once() -> None:
    requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        for answer in (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""):
            await reader.readuntil(b"\r\n\r\n")
            requests += 1
            writer.write(answer)

    async with serving(serve) as port:
        replicas = replica(0, 0, port)
        await replicas.forward(SIBLING, Client(), b"")
        with pytest.raises(OwnerGone):
            await replicas.forward(SIBLING, Client(), b"")

    assert requests == 2


async def test_without_a_signature_nobody_is_answered(dial: Dial) -> None:
    async with pair() as (_replicas, app, port):
        http = dial(port)
        for shown in (None, "", "wrong"):
            response = await http.request("GET", OWN_TASK, {"x-bridgehead-peer": shown})
            assert response.status == 403
        assert app.request is None
        assert app.rejected == [("peer", "127.0.0.1", 403)] * 3


async def test_a_client_never_gets_what_is_for_processes_alone() -> None:
    """However its request is forwarded: it is answered as any other of its path."""
    client = Client("GET")
    client.raw_path, client.path, client.query = OWN_TASK.encode(), OWN_TASK, b""
    async with pair() as (replicas, app, _port):
        await replicas.forward(SIBLING, client, b"")

    assert app.request is not None
    assert app.request.path == OWN_TASK
    assert b"HELP" not in client.sent.data


# --- signatures --------------------------------------------------------------------------------------------


OURS, THEIRS = "aaaaaaaaaaaa-3", "bbbbbbbbbbbb-3"


class Asked(Request):
    __slots__ = ("_pieces",)

    def __init__(self, *words: Any, body: bytes = b"") -> None:
        super().__init__(*words)
        self._pieces = [body, b""]

    async def read(self) -> bytes:
        return self._pieces.pop(0)

    async def open_stream(self, status: int, headers: Any) -> ResponseStream:
        raise NotImplementedError


def peers(name: str = OURS, keys: tuple[bytes, ...] = (KEY,), now: float = 1e9) -> Peers:
    redis: Any = None  # it is not asked: nothing is forwarded
    return Peers(Owners(name, redis, keys), keys, lambda: now)


SENT = {CLIENT: b"https 203.0.113.9", HOST: b"team.example", b"authorization": b"Bearer x", b"accept": b"*/*"}


def forwarded(
    by: Peers,
    owner: str = OURS,
    *,
    method: str = "POST",
    target: bytes = b"/mcp",
    changed: dict[bytes, bytes] | None = None,
    body: bytes = b"body",
    sent_body: bytes = b"body",
) -> Asked:
    """Make what arrives when a process forwards a request, perhaps changed on the way."""
    signature = by._sign(owner, "POST", b"/mcp", list(SENT.items()), sent_body)  # noqa: SLF001 - no socket
    pairs = {**SENT, **(changed or {}), PEER: signature, b"content-length": b"4"}
    arrived = Asked(method, target, target.decode(), b"", list(pairs.items()), body=body)
    arrived.address = "10.0.0.2"
    return arrived


async def test_what_a_replica_forwarded_is_answered_for_its_client() -> None:
    seen: list[Request] = []

    async def app(request: Request) -> Response:
        seen.append(request)
        return Response(200)

    answer = await PeerEndpoint(peers(), app, {})(forwarded(peers(THEIRS)))

    assert isinstance(answer, Response)
    assert answer.status == 200
    assert (seen[0].address, seen[0].scheme, seen[0].headers[b"host"]) == (
        "203.0.113.9",
        "https",
        b"team.example",
    )


@pytest.mark.parametrize(
    "arrived",
    [
        forwarded(peers(THEIRS, (OTHER,))),
        forwarded(peers(THEIRS), owner=THEIRS),
        forwarded(peers(THEIRS, (OTHER,), now=1e9 - SIGNATURE_SECONDS - 1)),
        forwarded(peers(THEIRS, (OTHER, KEY))),
        Asked("POST", b"/mcp", "/mcp", b"", []),
        Asked("POST", b"/mcp", "/mcp", b"", [(PEER, b"aaaaaaaaaaaa-3 x y")]),
        Asked("POST", b"/mcp", "/mcp", b"", [(PEER, b"aaaaaaaaaaaa-3 1000000000 ")]),
    ],
)
async def test_anything_else_is_turned_away(arrived: Asked) -> None:
    rejected: list[tuple[str, str, int]] = []

    answer = await PeerEndpoint(peers(), answer_ok, {}, lambda *what: rejected.append(what))(arrived)

    assert isinstance(answer, Response)
    assert answer.status == 403
    assert [what[0] for what in rejected] == ["peer"]


@pytest.mark.parametrize("seconds", [-SIGNATURE_SECONDS - 1, SIGNATURE_SECONDS + 1])
async def test_a_clock_that_differs_too_much_is_named_and_logged_once_a_minute(
    seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    rejected: list[tuple[str, str, int]] = []
    endpoint = PeerEndpoint(peers(), answer_ok, {}, lambda *what: rejected.append(what))

    with caplog.at_level("ERROR", "bridgehead"):
        answers = [await endpoint(forwarded(peers(THEIRS, now=1e9 + seconds))) for _ in range(2)]

    assert answers == [Response(403, headers=((PEER, b"clock 301"),))] * 2
    assert rejected == [("clock", "10.0.0.2", 403)] * 2
    assert len([record for record in caplog.records if "clocks of two servers differ" in record.message]) == 1


@pytest.mark.parametrize("seconds", [-SIGNATURE_SECONDS, 0.0, SIGNATURE_SECONDS])
async def test_a_clock_may_differ_by_five_minutes(seconds: float) -> None:
    answer = await PeerEndpoint(peers(), answer_ok, {})(forwarded(peers(THEIRS, now=1e9 + seconds)))

    assert (answer, SIGNATURE_SECONDS) == (Response(200), 300.0)


def test_a_time_of_more_than_twelve_digits_is_none() -> None:
    for digits, age in ((12, 0.0), (13, None)):
        now = float(10 ** (digits - 1))
        found = peers(now=now).read_signature(forwarded(peers(THEIRS, now=now)))
        assert (None if found is None else found.age) == age


async def test_only_who_asked_for_another_process_is_told_that_it_is_gone() -> None:
    endpoint = PeerEndpoint(peers(), answer_ok, {})

    assert await endpoint(forwarded(peers(), owner=THEIRS)) == Response(403, headers=((PEER, b"gone"),))
    assert await endpoint(forwarded(peers(THEIRS, (OTHER,)))) == Response(403)
    assert await endpoint(Asked("POST", b"/mcp", "/mcp", b"", [])) == Response(403)


async def test_a_process_that_asks_for_what_we_do_not_know_hears_so() -> None:
    signature = peers(THEIRS)._sign(OURS, "GET", b"/newer")  # noqa: SLF001 - otherwise it goes over a socket
    asked = Asked("GET", b"/newer", "/newer", b"", [(PEER, signature)])

    assert await PeerEndpoint(peers(), answer_ok, {})(asked) == Response(404)


def test_releases_with_one_protocol_ask_each_other_at_the_same_paths() -> None:
    """While a service is updated, both run at once. Whoever changes a path raises the number."""
    assert (PROTOCOL, OWN_TASK, END_SESSION) == ("-3", "/own-task", "/end-session")


async def test_who_forwards_to_a_process_with_another_clock_is_told_by_how_much_it_differs() -> None:
    async with pair() as (replicas, app, _port):
        replicas._now = lambda: time.time() - 400  # noqa: SLF001 - the clock of a replica that lags
        with pytest.raises(ClocksDiffer, match=r"differ by 40[01] s; 300 s are allowed"):
            await replicas.forward(SIBLING, Client(), b"body")

    assert app.request is None
    assert [what[0] for what in app.rejected] == ["clock"]


@pytest.mark.parametrize(
    "changed",
    [
        {"changed": {CLIENT: b"https 127.0.0.1"}},
        {"changed": {HOST: b"evil.example"}},
        {"changed": {b"authorization": b"Bearer other"}},
        {"changed": {b"mcp-session-id": b"another"}},
        {"method": "DELETE"},
        {"target": b"/other/mcp"},
        {"body": b"evil"},
        {"body": b""},
    ],
)
async def test_nothing_of_a_request_can_be_changed_on_the_way(changed: dict[str, Any]) -> None:
    ours, theirs = peers(), peers(THEIRS)
    endpoint = PeerEndpoint(ours, answer_ok, {})

    assert await endpoint(forwarded(theirs)) == Response(200)
    assert await endpoint(forwarded(theirs, **changed)) == Response(403)


async def test_a_request_that_was_captured_is_answered_once() -> None:
    endpoint, theirs = PeerEndpoint(peers(), answer_ok, {}), peers(THEIRS)
    captured = forwarded(theirs)
    again = Asked("POST", b"/mcp", "/mcp", b"", captured.header_pairs, body=b"body")

    assert await endpoint(captured) == Response(200)
    assert await endpoint(again) == Response(403)
    assert await endpoint(forwarded(theirs)) == Response(200)


@given(numbers=st.lists(st.integers(0, 20_000), max_size=80))
def test_each_number_is_used_at_most_once_and_new_ones_always(numbers: list[int]) -> None:
    once, seen = forwarding.Once(), set[int]()
    for number in numbers:
        newest = max(seen, default=0)
        is_new = once.use(number)
        assert not (is_new and number in seen)
        if number > newest or (number not in seen and 0 < newest - number < 4096):
            assert is_new
        seen.add(number)


def age(ours: Peers, arrived: Asked) -> float | None:
    found = ours.read_signature(arrived)
    return None if found is None else found.age


def test_a_signature_is_valid_although_a_second_ends_while_it_is_made() -> None:
    theirs, ticks = peers(THEIRS), itertools.count(10**9)
    theirs._now = lambda: float(next(ticks))  # noqa: SLF001

    assert age(peers(), forwarded(theirs)) == 0.0


def test_keys_rotate() -> None:
    assert age(peers(keys=(OTHER, KEY)), forwarded(peers(THEIRS, (KEY,)))) == 0.0
    assert age(peers(keys=(KEY, OTHER)), forwarded(peers(THEIRS, (OTHER, KEY)))) == 0.0


async def test_the_connections_to_a_process_that_was_not_asked_for_longest_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "_MAX_POOLS", 1)
    has_left, ended = asyncio.Event(), list[asyncio.StreamWriter]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        if not await reader.read():
            has_left.set()
        writer.close()
        await writer.wait_closed()
        ended.append(writer)

    first = await asyncio.start_server(answer, "127.0.0.1", 0)
    second = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with first, second:
        ports = [server.sockets[0].getsockname()[1] for server in (first, second)]
        peers = replica(0, 1, *ports)
        assert await peers.ask("aaaaaaaaaaa1-3", OWN_TASK) == b"hi"
        assert not has_left.is_set()
        assert await peers.ask("aaaaaaaaaaa2-3", OWN_TASK) == b"hi"

        async with asyncio.timeout(PATIENCE):
            await has_left.wait()
            await peers.close()
            while len(ended) < len(ports):
                await asyncio.sleep(0.001)


async def test_the_connections_to_a_process_that_was_asked_lately_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "_MAX_POOLS", 2)
    connections = dict.fromkeys(range(1, 4), 0)

    async with AsyncExitStack() as stack:

        async def serve(number: int) -> int:
            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                connections[number] += 1
                while await reader.readuntil(b"\r\n\r\n"):
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")

            return await stack.enter_async_context(serving(answer))

        peers = replica(0, 1, *[await serve(number) for number in connections])
        for number in (1, 2, 1, 3, 1, 2):
            assert await peers.ask(f"aaaaaaaaaaa{number}-3", OWN_TASK) == b"hi"
        await peers.close()

    assert connections == {1: 1, 2: 2, 3: 1}


# --- what processes ask each other for themselves -----------------------------------------------------------


async def test_an_answer_may_have_16_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (size, bytes(size)))
        await writer.drain()

    monkeypatch.setattr(forwarding, "ASK_SECONDS", PATIENCE)
    async with serving(answer) as port:
        replicas = replica(0, 0, port)
        for size in (2 << 20, (16 << 20) + 1):
            assert len(await replicas.ask(SIBLING, OWN_TASK)) == (size if size == 2 << 20 else 0)
        await replicas.close()


async def test_a_task_is_fetched_from_the_process_that_owns_it() -> None:
    record = TaskRecord(f"{SIBLING}~1/2", "view", "me", 1.0, 2.0, 3.0)
    queries: list[bytes] = []

    async def app(request: Request) -> ResponseStream:
        raise NotImplementedError

    async def own_task(request: Request) -> Response:
        queries.append(request.query)
        return Response(200, msgspec.msgpack.encode(record) if len(queries) == 1 else b"")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        ports = (0, listener.getsockname()[1])
        server = Server(PeerEndpoint(replica(1, *ports), app, {OWN_TASK: own_task}), shutdown_seconds=1)
        await server.start(listener)
        replicas = replica(0, *ports)
        assert await replicas.fetch_task(record.id) == record
        assert await replicas.fetch_task(record.id) is None  # it is not known there any more
        assert await replicas.fetch_task(f"{US}~1") is None
        await replicas.close()
        await server.stop()

    assert queries == [b"aaaaaaaaaaa1-3~1%2F2"] * 2
