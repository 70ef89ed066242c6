"""Connection: one HTTP/1.1 connection, with one request on it at a time, and the response to that.

The connection fills the response in and the caller reads it. Unread bytes are bounded: above `MAX_UNREAD` the
connection stops reading from the socket until the caller has caught up.

Bytes outside of a body (heads, informational responses, chunk extensions, trailers) are bounded together by
`MAX_HEAD_BYTES`, so a peer cannot make any of them endless.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, Iterable
from typing import cast

import httptools
from msgspec import Struct

MAX_UNREAD = 256 * 1024
MAX_HEAD_BYTES = 64 * 1024
IDLE_SECONDS = 4.0
"""Below the 5 s after which common servers (uvicorn, Node) close an idle connection without a word."""
_IDLE_MARGIN = 1.0
"""Taken from the time that a server announces: its clock began earlier than ours."""
_KEEP_ALIVE = re.compile(r"\btimeout=(\d{1,6})\b", re.IGNORECASE)
_FINAL = 200
_HEADER_SIGNS = len(": \r\n")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_HEAD_TOO_LARGE = f"the head of the response has more than {MAX_HEAD_BYTES} bytes"


class ConnectFailed(Exception):
    """No connection could be opened, so nothing was sent."""


class CertificateRefused(ConnectFailed):
    """The certificate of the other side cannot be trusted; another try would end the same way."""


class ConnectionBroken(Exception):
    """The connection broke during a request; the peer may have acted on it."""

    received = b""
    """The part of the body that `read_body` had read by then."""


class BodyTooLarge(Exception):
    """The body has more bytes than the caller allows."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the body has more than {max_bytes} bytes")


class Response:
    """The response to one request; its head is complete when the caller gets it."""

    def __init__(self, source: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._source = source
        self._waiter: asyncio.Future[None] | None = None
        self.pieces: list[bytes] = []
        """Unread pieces of the body; the connection appends to it."""
        self._unread = 0
        self._is_paused = False
        self._failure: Exception | None = None
        """Why an incomplete response will not be completed."""
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        """In the order received; names in lower case."""
        self.has_head = False
        self.is_complete = False

    def header(self, name: str) -> str | None:
        """Return the last value of a header; the name is in lower case."""
        encoded_name = name.encode()
        values = [value for key, value in self.headers if key == encoded_name]
        return values[-1].decode("latin-1") if values else None

    async def read(self, seconds: float | None = None) -> bytes:
        """Return the unread part of the body, waiting up to `seconds` for some; empty at its end.

        Raises `ConnectionBroken` and `TimeoutError`.
        """
        while not self.pieces:
            if self.is_complete:
                return b""
            if self._failure is not None:
                raise self._failure
            await self._wait(seconds)
        data = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
        self.pieces.clear()
        self._unread = 0
        if self._is_paused:
            self._is_paused = False
            self._source.resume_reading()
        return data

    async def read_body(
        self, max_bytes: int, seconds: float | None = None, received: list[bytes] | None = None
    ) -> bytes:
        """Return the whole body, waiting up to `seconds` for each piece; also raises `BodyTooLarge`.

        Its pieces are added to `received`, so that a caller whose time is over has what came.
        """
        if not self.is_complete:
            length = self.header("content-length")
            if length is not None and int(length) > max_bytes:
                raise BodyTooLarge(max_bytes)
        pieces: list[bytes] = [] if received is None else received
        size = 0
        try:
            while piece := await self.read(seconds):
                size += len(piece)
                if size > max_bytes:
                    raise BodyTooLarge(max_bytes)
                pieces.append(piece)
                if self.is_complete and not self.pieces:  # saves another call of `read`
                    break
        except ConnectionBroken as problem:
            problem.received = b"".join(pieces)
            raise
        return b"".join(pieces)

    # --- what the connection calls -------------------------------------------------------------------------

    async def wait_for_head(self) -> None:
        """Wait for the head, without a time limit of its own."""
        while not self.has_head:
            if self._failure is not None:
                raise self._failure
            await self._wait(None)

    def wake_reader(self, size: int) -> None:
        """Wake the reader after a segment of this size, which had something for it."""
        if self.pieces:
            self._unread += size  # framing included
            if self._unread > MAX_UNREAD and not self._is_paused:
                self._is_paused = True
                self._source.pause_reading()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def fail(self, failure: Exception) -> None:
        """Fail with the first reason that is reported."""
        if self._failure is None:
            self._failure = failure
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self, seconds: float | None) -> None:
        # A timer of our own: asyncio.timeout costs three times as much for each piece of a stream.
        waiter = self._waiter = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, _expire, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class Request(Struct):
    """A request; a body that is an async iterable is sent chunked, as its pieces come."""

    method: str
    target: str
    headers: Iterable[tuple[str, str]] = ()
    body: bytes | AsyncIterable[bytes] = b""
    is_written: bool = False
    """Whether any byte of it may have been sent."""


class Connection(asyncio.Protocol):
    """A connection and the response that is arriving on it."""

    def __init__(self, fixed_headers: str) -> None:
        self._fixed_headers = fixed_headers
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response: Response | None = None
        self._lost: ConnectionBroken | None = None
        self._is_bodiless = False
        self._is_kept_alive = True
        self._is_sent = True
        """Whether the whole request, with its body, has been written."""
        self._unstructured = 0
        """Bytes since the last piece of a body; bounded by `MAX_HEAD_BYTES`."""
        self._has_news = False
        """Whether the segment being parsed holds data for the reader."""
        self._writable: asyncio.Future[None] | None = None
        self.has_answered = False
        """Whether any byte of a response to the last request has arrived."""
        self.is_kept = False
        """Whether it is reused: it has served a request before."""
        self.idle_since = 0.0
        self.idle_seconds = IDLE_SECONDS
        """How long it may be idle before it is used again."""

    # --- what the pool calls -------------------------------------------------------------------------------

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent."""
        is_done = self._response is None or self._response.is_complete
        return self._lost is None and is_done and self._is_sent and self._is_kept_alive

    @property
    def is_alive(self) -> bool:
        """Whether the peer has kept it open, as far as the event loop has read."""
        # A transport that has read the end or a reset calls connection_lost a turn of the loop later.
        return self._lost is None and self._transport is not None and not self._transport.is_closing()

    def send(self, request: Request) -> Response:
        """Write a request, without a body in pieces, and return its response, which is still empty.

        Raises `ConnectFailed`, with nothing written, if the connection is closed already.
        """
        transport = self._transport
        if transport is None or not self.is_alive:
            raise ConnectFailed(str(self._lost or "the other side closed it"))
        # A new parser for each response: one that failed or was left half way does not recover.
        self._parser = httptools.HttpResponseParser(self)
        response = self._response = Response(self, self._loop)
        self._is_bodiless = request.method == "HEAD"
        self.has_answered = False
        self._unstructured = 0
        self._is_sent = isinstance(request.body, bytes)
        lines = [f"{name}: {value}\r\n" for name, value in request.headers]
        body = request.body
        if not isinstance(body, bytes):
            lines.append("Transfer-Encoding: chunked\r\n")
        elif body or request.method in _WITH_BODY:
            lines.append(f"Content-Length: {len(body)}\r\n")
        own = "".join(lines)
        start = f"{request.method} {request.target}"
        # Header injection: a line break inside a value would make a second header, or a second request.
        if "\r" in start or "\n" in start or not own.count("\r") == own.count("\n") == len(lines):
            raise ValueError("a request's target and headers cannot contain line breaks")
        head = f"{start} HTTP/1.1\r\n{self._fixed_headers}{own}\r\n".encode("latin-1")
        # Set before the write: a write that fails may have sent a part.
        request.is_written = True
        transport.write(head + body if isinstance(body, bytes) else head)
        return response

    async def send_body(self, pieces: AsyncIterable[bytes]) -> None:
        """Send a chunked body; each piece waits until the transport has room for it."""
        async for piece in pieces:
            if piece:
                await self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await self._write(b"0\r\n\r\n")
        self._is_sent = True

    async def _write(self, data: bytes) -> None:
        if self._lost is not None or self._transport is None:
            raise self._lost or ConnectionBroken("it was never made")
        self._transport.write(data)
        if self._writable is not None:
            # Never for longer than the exchange, which cancels this task.
            await self._writable

    def abandon(self, reason: str, cause: BaseException | None = None) -> None:
        """Close it; reading its response raises with this reason."""
        failure = ConnectionBroken(reason)
        failure.__cause__ = cause
        self._lose(failure)
        self.close()

    def close(self) -> None:
        """Close it at once, without flushing."""
        if self._transport is not None:
            self._transport.abort()

    # --- what the response calls ---------------------------------------------------------------------------

    def pause_reading(self) -> None:
        """Stop reading from the socket, so that TCP slows the sender."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read from the socket again."""
        if self._transport is not None and self._lost is None:
            self._transport.resume_reading()

    # --- what the event loop calls -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; abort it if the request was abandoned meanwhile."""
        self._transport = cast("asyncio.Transport", transport)  # true for TCP, TLS and Unix sockets
        if self._lost is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse a segment and wake the reader if it can use something of it."""
        response = self._response
        if response is None or response.is_complete:
            self.abandon("the other side sent data without a request")
            return
        self.has_answered = True
        self._has_news = False
        self._unstructured += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            # A response that is complete already stays valid, whatever follows it in the same segment.
            self.abandon(f"what arrived is not HTTP ({type(problem).__name__})")
        if self._unstructured > MAX_HEAD_BYTES and not response.is_complete:
            self.abandon(_HEAD_TOO_LARGE)
        # Each wake restarts the reader's time limit, so bytes without content, such as framing, cause none.
        if self._has_news:
            response.wake_reader(len(data))

    def eof_received(self) -> None:
        """Treat the end as a lost connection at once; TLS calls connection_lost some loop turns later."""
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the response, unless it is one whose body ends with the connection."""
        response = self._response
        # Without either header the body ends with the connection (RFC 9112, 6.3).
        if (
            exc is None
            and response is not None
            and response.has_head
            and not any(name in {b"content-length", b"transfer-encoding"} for name, _ in response.headers)
        ):
            response.is_complete = True
        reason = "the other side closed it" if exc is None else str(exc) or type(exc).__name__
        self._lose(ConnectionBroken(reason))
        self.resume_writing()

    def pause_writing(self) -> None:
        """Make `send_body` wait: the transport's buffer is full."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let `send_body` continue."""
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def _lose(self, failure: ConnectionBroken) -> None:
        if self._lost is None:
            self._lost = failure
        if self._response is not None:
            self._response.fail(self._lost)

    # --- what the parser calls -----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Refuse a second response in the same segment as the first: nobody asked for it."""
        if self._response is None or self._response.is_complete:
            self._refuse("the other side sent two responses to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of the head; drop trailers."""
        response = self._response
        if response is not None and not response.has_head:
            response.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Finish the head; an informational response (1xx) is dropped."""
        response = self._response
        if response is None:
            return
        response.status = self._parser.get_status_code()
        if response.status < _FINAL:
            response.headers = []
            return
        # The count includes the start of the body if it came in the same segment. Only if it exceeds the
        # limit are the headers measured by themselves.
        if self._unstructured > MAX_HEAD_BYTES:
            size = sum(len(name) + len(value) + _HEADER_SIGNS for name, value in response.headers)
            if size > MAX_HEAD_BYTES:
                self._refuse(_HEAD_TOO_LARGE)
        response.has_head = self._has_news = True
        self._unstructured = 0
        # The parser cannot know that the request was HEAD, and would wait for the announced body.
        if self._is_bodiless:
            self.on_message_complete()

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._unstructured = 0
        response = self._response
        if response is not None and not response.is_complete:
            self._has_news = True
            response.pieces.append(piece)

    def on_message_complete(self) -> None:
        """Complete the response."""
        response = self._response
        if response is not None and response.has_head:
            response.is_complete = self._has_news = True
            self._is_kept_alive = self._parser.should_keep_alive()
            announced = _KEEP_ALIVE.search(response.header("keep-alive") or "")
            if announced is not None:
                self.idle_seconds = int(announced[1]) - _IDLE_MARGIN

    def _refuse(self, reason: str) -> None:
        """Fail the response and stop the parser, which turns this into an HttpParserError."""
        failure = ConnectionBroken(reason)
        self._lose(failure)
        raise failure
