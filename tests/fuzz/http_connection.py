"""HTTP: bytes for the server's `data_received`, on a transport that only remembers.

What must hold of any bytes: no exception, not even a logged one; whatever is refused gets a status; what is
said and what reaches the handler does not depend on how the bytes are cut or how slowly the client reads;
nothing hangs; no more is kept than the limits say.
"""

import asyncio
import hashlib
import logging
import random
import re
from dataclasses import dataclass, field
from typing import Any

from bridgehead.mcp.http.message import Request, Response
from bridgehead.mcp.http.server import protocol
from bridgehead.mcp.http.server.connections import Connections
from bridgehead.mcp.http.server.protocol import MAX_UNREAD_BYTES, Http1Protocol
from tests.adversary.cases import CASES, END

WORDS = (
    b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\n", b"HTTP/1.0", b"Host: localhost\r\n", b"Content-Length: ",
    b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Connection: keep-alive\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"Expect: 100-continue\r\n", b"\r\n\r\n", b"1\r\nx\r\n",
    b"0\r\n\r\n", b"0\r\nX-T: 1\r\n\r\n", b"5;a=b\r\n", b"Authorization: Bearer x\r\n", b"HEAD", b"CONNECT",
    b"http://localhost/", b"%00", b"?", b"ffffffffffffffff",
)  # fmt: skip
SEEDS = tuple(CASES.values())
READ_BYTES = 256 * 1024
"""What an event loop reads at once at most."""
MOST_TURNS = 100_000
MOST_BACKLOG = 2 * READ_BYTES
MOST_QUEUED = 2 + protocol.BODY_SLICE_BYTES // len(b"GET / HTTP/1.1\r\n\r\n")
CUTS = 3
VARYING = re.compile(rb"date: [^\r]*\r\n|HTTP/1\.1 100 Continue\r\n\r\n")
"""What may differ: the time, and the word to a client that waits to be asked for its body."""


class Broken(AssertionError):
    """Something that must hold of any bytes does not."""


@dataclass
class Outcome:
    """What came of some bytes: what was written, whom the handler saw, and how it ended."""

    written: bytes = b""
    requests: list[tuple[str, bytes, str, int]] = field(default_factory=list)
    rejections: list[tuple[str, int]] = field(default_factory=list)
    is_closed: bool = False

    @property
    def statuses(self) -> list[int]:
        """The statuses of the responses, in their order."""
        return [int(status) for status in re.findall(rb"(?:^|\r\n|\x00)HTTP/1\.1 (\d{3}) ", self.written)]


class Transport:
    """A transport that keeps what is written, and lets the server wait if its client is slow."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, is_slow: bool) -> None:
        self._loop = loop
        self._is_slow = is_slow
        self.connection: Http1Protocol
        self.written: list[bytes] = []
        self.is_closed = False
        self.is_paused = False

    def get_extra_info(self, name: str) -> Any:
        """Tell who is at the other end."""
        return ("127.0.0.1", 1) if name == "peername" else None

    def write(self, data: bytes) -> None:
        """Keep it; a slow client reads it two turns later."""
        if self.is_closed:
            raise Broken("written to a connection that is closed")
        self.written.append(data)
        if self._is_slow and self.connection.writable is None:
            self.connection.pause_writing()
            self._loop.call_soon(self._loop.call_soon, self.connection.resume_writing)

    def get_write_buffer_size(self) -> int:
        """Nothing waits to be written."""
        return 0

    def is_closing(self) -> bool:
        """Tell whether it was closed."""
        return self.is_closed

    def close(self) -> None:
        """Close it; what was written stays."""
        self.is_closed = True

    abort = close

    def pause_reading(self) -> None:
        """Get nothing more."""
        self.is_paused = True

    def resume_reading(self) -> None:
        """Get more again."""
        self.is_paused = False


class Mirror:
    """A handler that answers with what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes, str, int]] = []

    async def __call__(self, request: Request) -> Response:
        """Answer once the whole body is there."""
        body = b""
        while piece := await request.read():
            body += piece
        seen = (request.method, request.raw_path, hashlib.sha256(body).hexdigest()[:8], len(body))
        self.requests.append(seen)
        return Response(200, f"{request.method} {request.path!r} {seen[2]} {seen[3]}\0".encode())


class _Complaints(logging.Handler):
    """Keeps what the server logs as a failure."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())


async def replay(pieces: list[bytes], *, is_slow: bool = False) -> Outcome:
    """Give pieces to a connection as a loop would, and return what came of it. Raises Broken."""
    loop = asyncio.get_running_loop()
    outcome, mirror, complaints = Outcome(), Mirror(), _Complaints()
    logging.getLogger("bridgehead.mcp.http").addHandler(complaints)
    loop.set_exception_handler(lambda _, context: complaints.records.append(str(context)))
    connections = Connections(
        mirror, loop, on_reject=lambda reason, _, status: outcome.rejections.append((reason, status))
    )
    connection, transport = Http1Protocol(connections), Transport(loop, is_slow=is_slow)
    transport.connection = connection
    try:
        connection.connection_made(transport)  # type: ignore[arg-type]
        await _deliver(connection, transport, pieces)
        outcome.is_closed = transport.is_closed
        connection.connection_lost(None)
        await _settle()
    finally:
        logging.getLogger("bridgehead.mcp.http").removeHandler(complaints)
        loop.set_exception_handler(None)
    if complaints.records:
        raise Broken(f"it was logged that {complaints.records}")
    outcome.written = VARYING.sub(b"", b"".join(transport.written))
    outcome.requests = mirror.requests
    return outcome


async def _deliver(connection: Http1Protocol, transport: Transport, pieces: list[bytes]) -> None:
    for piece in pieces:
        for start in range(0, len(piece), READ_BYTES):
            if transport.is_paused:
                await _settle()
            if transport.is_closed:
                return
            if transport.is_paused:
                raise Broken("it stopped reading and never went on")
            connection.data_received(piece[start : start + READ_BYTES])
            _check_memory(connection)
        await asyncio.sleep(0)
    await _settle()
    if transport.is_paused and not transport.is_closed:
        raise Broken("it stopped reading and never went on")


async def _settle() -> None:
    """Let the loop turn until nothing is to be done."""
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # noqa: SLF001 - nobody else knows
    for _ in range(MOST_TURNS):
        await asyncio.sleep(0)
        if not ready:
            return
    raise Broken("it never comes to rest")


def _check_memory(connection: Http1Protocol) -> None:
    queue, backlog = connection.queue, connection._backlog  # noqa: SLF001 - what is kept is what is judged
    if len(backlog) > MOST_BACKLOG:
        raise Broken(f"{len(backlog)} bytes wait to be parsed")
    if len(queue) > MOST_QUEUED:
        raise Broken(f"{len(queue)} requests wait for their turn")
    if sum(len(one.body) for one in queue) > MAX_UNREAD_BYTES + READ_BYTES:
        raise Broken("more of a body is kept than anybody has read")


def judge(outcome: Outcome) -> None:
    """See that whatever was refused has a status."""
    refused = [status for _, status in outcome.rejections]
    if refused and (len(refused) > 1 or outcome.statuses[-1:] != refused or not outcome.is_closed):
        raise Broken(f"refused with {refused}, but said {outcome.statuses}")
    if len(outcome.statuses) != len(outcome.requests) + len(refused):
        raise Broken(f"{len(outcome.requests)} requests and {refused}, but {outcome.statuses}")
    if outcome.is_closed and not outcome.statuses:
        raise Broken("closed without a status")


def cut(data: bytes, dice: random.Random) -> list[bytes]:
    """Cut an input into pieces at random places."""
    limit = min(len(data) - 1, dice.choice((1, 2, 5, 40)))
    places = sorted(dice.sample(range(1, len(data)), limit)) if limit > 0 else []
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


async def check(data: bytes, seed: int) -> None:
    """Try some bytes whole, cut, and with a slow client. Raises Broken."""
    dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    data += END
    whole = await replay([data])
    judge(whole)
    ways = [cut(data, dice) for _ in range(CUTS)]
    if len(data) < 500:
        ways.append([data[at : at + 1] for at in range(len(data))])
    for number, pieces in enumerate(ways):
        found = await replay(pieces, is_slow=number == 0)
        if found != whole and not _are_both_right(found, whole):
            raise Broken(f"whole: {whole}\ncut into {[len(piece) for piece in pieces]}: {found}")


def _are_both_right(one: Outcome, other: Outcome) -> bool:
    """Tell whether they only differ in why a head was refused: broken, or too large.

    The parser reports a header when it reaches the next one or the end of a slice, and raw bytes are counted
    in whole slices. So if a head is both, the cut decides which of the two is seen first.
    """
    return {*one.rejections, *other.rejections} == {("malformed", 400), ("head_size", 431)} and (
        (one.requests, one.statuses[:-1]) == (other.requests, other.statuses[:-1])
    )
