"""Connection: HTTP/1.1 on one socket, with as little between the parser and the answer as there can be.

Owns framing, keep-alive, pipelining and the news that a client is gone. What is answered is decided by the
function that it is given.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, cast

import httptools

from .journal import Request

MOST_BODY_BYTES = 64 * 1024 * 1024
_STATUS_LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}
_JSON = b"content-type: application/json\r\n"
_EVENTS = b"content-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n"
_LAST_CHUNK = b"0\r\n\r\n"

Serve = Callable[["Exchange"], None]


class Connection(asyncio.Protocol):
    """One client; its requests are served one after the other."""

    def __init__(self, serve: Serve, connections: set[Connection]) -> None:
        self._serve = serve
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Exchange] = deque()
        self._active: Exchange | None = None
        self._url = b""
        self._pairs: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._writable: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Give up what is under way."""
        self._connections.discard(self)
        self.resume_writing()
        if self._active is not None:
            self._active.abandon()
        self._queue.clear()

    def pause_writing(self) -> None:
        """Let whoever writes wait: the client does not read."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Let whoever waits write on."""
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    async def drained(self) -> None:
        """Wait until the client has read enough, and let others have their turn."""
        if self._writable is not None:
            await asyncio.shield(self._writable)
        else:
            await asyncio.sleep(0)

    # --- in ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse; whole requests are served at once."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.transport.write(_STATUS_LINES[400] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._url = b""
        self._pairs = []
        self._body = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a piece of the address."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._pairs.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._body_bytes += len(body)
        if self._body_bytes > MOST_BODY_BYTES:
            raise OverflowError  # which the parser passes on as an error of its own
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Serve the request, or let it wait for those before it."""
        path = self._url.partition(b"?")[0].decode("latin-1")
        method = self._parser.get_method().decode("latin-1")
        request = Request(method, path, self._pairs, b"".join(self._body), time.monotonic())
        self._queue.append(Exchange(self, request, keep_alive=self._parser.should_keep_alive()))
        if self._active is None:
            self._serve_next()

    def _serve_next(self) -> None:
        self._active = self._queue.popleft() if self._queue else None
        if self._active is not None:
            self._serve(self._active)

    def finished(self, *, keep_alive: bool) -> None:
        """Go on to the next request, or close."""
        if keep_alive:
            self._serve_next()
        else:
            self._active = None
            self.transport.close()


class Exchange:
    """One request and the ways to answer it."""

    __slots__ = ("_connection", "_keep_alive", "_task", "on_change", "request")

    def __init__(self, connection: Connection, request: Request, *, keep_alive: bool) -> None:
        self._connection = connection
        self._keep_alive = keep_alive
        self._task: asyncio.Task[None] | None = None
        self.request = request
        self.on_change: Callable[[], None] = _nothing

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Answer in a task of its own, which ends when the client goes."""
        self._task = asyncio.get_running_loop().create_task(work)

    def abandon(self) -> None:
        """Note that the client is gone."""
        if self._task is not None:
            self._task.cancel()
        if self.request.finished is None:
            self.request.aborted = time.monotonic()
            self.on_change()

    # --- in one piece --------------------------------------------------------------------------------------

    def answer(self, status: int, body: bytes, headers: bytes = _JSON) -> None:
        """Send a whole answer."""
        length = b"content-length: %d\r\n\r\n" % len(body)
        self._write_first(status, headers + length + body)
        self._finish(keep_alive=self._keep_alive)

    def answer_part(self, body: bytes, length: int) -> None:
        """Send the beginning of an answer that is announced as longer; nothing else is done."""
        self._write_first(200, _JSON + b"content-length: %d\r\n\r\n" % length + body)

    # --- as a stream ---------------------------------------------------------------------------------------

    def begin(self, headers: bytes = _EVENTS) -> None:
        """Send the head of a stream."""
        self._write_first(200, headers + b"\r\n")

    async def send(self, pieces: list[bytes]) -> None:
        """Send pieces of a stream, each as a chunk of its own, and wait while the client is slow."""
        self.request.chunks += len(pieces)
        self._connection.transport.write(b"".join([b"%x\r\n%b\r\n" % (len(one), one) for one in pieces]))
        self.on_change()
        await self._connection.drained()

    def end(self) -> None:
        """End a stream in good order."""
        self._connection.transport.write(_LAST_CHUNK)
        self._finish(keep_alive=self._keep_alive)

    # --- badly ---------------------------------------------------------------------------------------------

    def cut(self) -> None:
        """Close the connection after what has been sent so far."""
        self._finish(keep_alive=False)

    def _write_first(self, status: int, data: bytes) -> None:
        self.request.status = status
        self.request.answered = time.monotonic()
        close = b"" if self._keep_alive else b"connection: close\r\n"
        self._connection.transport.write(_STATUS_LINES[status] + close + data)

    def _finish(self, *, keep_alive: bool) -> None:
        self.request.finished = time.monotonic()
        self.on_change()
        self._connection.finished(keep_alive=keep_alive)


def _nothing() -> None:
    """Tell nobody."""
