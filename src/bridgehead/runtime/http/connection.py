"""Connection: one HTTP/1.1 connection, with one request on it at a time.

What arrives outside of a body (heads, informational responses, chunk extensions, trailers) is bounded by
`MAX_HEAD_BYTES`, whichever of them a peer chooses to make endless.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable
from typing import cast

import httptools
from msgspec import Struct

from .response import ConnectFailed, ConnectionBroken, Response

MAX_HEAD_BYTES = 64 * 1024
_FINAL = 200
_HEADER_SIGNS = len(": \r\n")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_HEAD_TOO_LARGE = f"the head of the response has more than {MAX_HEAD_BYTES} bytes"


class Request(Struct):
    """A request as it goes out; a body in pieces is sent as they come."""

    method: str
    target: str
    headers: Iterable[tuple[str, str]] = ()
    body: bytes | AsyncIterable[bytes] = b""
    is_written: bool = False
    """Whether any byte of it was handed to a transport."""


class Connection(asyncio.Protocol):
    """A connection, and the response that is arriving on it."""

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
        """Whether all of the request has gone out."""
        self._unstructured = 0
        """Bytes since the last piece of a body: a head, or what a peer sends in its place without end."""
        self._has_news = False
        self._writable: asyncio.Future[None] | None = None
        self.has_answered = False
        """Whether any byte of a response to the last request has come."""
        self.is_kept = False
        """Whether it has had a request before and was kept."""
        self.idle_since = 0.0

    # --- what the pool calls -------------------------------------------------------------------------------

    @property
    def is_reusable(self) -> bool:
        """Tell whether another request can be sent."""
        is_done = self._response is None or self._response.is_complete
        return self._lost is None and is_done and self._is_sent and self._is_kept_alive

    @property
    def is_alive(self) -> bool:
        """Tell whether the other side still holds it open, as far as the event loop has read."""
        # A transport that has read the end or a reset calls connection_lost a turn of the loop later.
        return self._lost is None and self._transport is not None and not self._transport.is_closing()

    def send(self, request: Request) -> Response:
        """Send a request, but not a body in pieces; what arrives from now on is its response.

        Raises `ConnectFailed`, with nothing written, on a connection that is closed already.
        """
        transport = self._transport
        if transport is None or not self.is_alive:
            raise ConnectFailed(str(self._lost or "the other side closed it"))
        # A parser for each response: one that has failed or was left half way does not recover.
        self._parser = httptools.HttpResponseParser(self)
        response = self._response = Response(self)
        self._is_bodiless = request.method == "HEAD"
        self.has_answered = False
        self._unstructured = 0
        self._is_sent = isinstance(request.body, bytes)
        data = self._encode(request)
        request.is_written = True  # before the write: one that fails may have sent a part
        transport.write(data)
        return response

    def _encode(self, request: Request) -> bytes:
        lines = [f"{name}: {value}\r\n" for name, value in request.headers]
        body = request.body
        if not isinstance(body, bytes):
            lines.append("Transfer-Encoding: chunked\r\n")
        elif body or request.method in _WITH_BODY:
            lines.append(f"Content-Length: {len(body)}\r\n")
        own = "".join(lines)
        start = f"{request.method} {request.target}"
        # Nobody may end a line for us: a header from elsewhere would become two, or a second request.
        if "\r" in start or "\n" in start or not own.count("\r") == own.count("\n") == len(lines):
            raise ValueError("a request's target and headers cannot contain line breaks")
        head = f"{start} HTTP/1.1\r\n{self._fixed_headers}{own}\r\n".encode("latin-1")
        return head + body if isinstance(body, bytes) else head

    async def send_body(self, pieces: AsyncIterable[bytes]) -> None:
        """Send a body in pieces, each when the other side has taken what came before."""
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
            await self._writable  # ends at the latest with the exchange, which cancels the sending

    def abandon(self, why: str, cause: BaseException | None = None) -> None:
        """End it, and tell whoever reads the response why."""
        failure = ConnectionBroken(why)
        failure.__cause__ = cause
        self._lose(failure)
        self.close()

    def close(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- what the response calls ---------------------------------------------------------------------------

    def pause_reading(self) -> None:
        """Stop reading, because enough is unread."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self._transport is not None and self._lost is None:
            self._transport.resume_reading()

    # --- what the event loop calls -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast("asyncio.Transport", transport)  # of whichever event loop, it is a stream's
        if self._lost is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived."""
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
            # A complete response stands, whatever follows it in the same segment.
            self.abandon(f"what arrived is not HTTP ({type(problem).__name__})")
        if self._unstructured > MAX_HEAD_BYTES and not response.is_complete:
            self.abandon(_HEAD_TOO_LARGE)
        if self._has_news:  # a reader's time limit starts anew with each wake, so only for what it can use
            if response.pieces:
                response.count(len(data))
            response.wake()

    def eof_received(self) -> None:
        """Take in that the other side closes; TLS calls connection_lost only some turns of the loop later."""
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that the connection is gone."""
        response = self._response
        if exc is None and response is not None and response.has_head and _ends_with_connection(response):
            response.is_complete = True
        why = "the other side closed it" if exc is None else str(exc) or type(exc).__name__
        self._lose(ConnectionBroken(why))
        self.resume_writing()

    def pause_writing(self) -> None:
        """Hold the body of a request back."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let the body of a request go on."""
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
        """Refuse a second response to one request, in the same segment as the first."""
        if self._response is None or self._response.is_complete:
            self._refuse("the other side sent two responses to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers, which come after the head, are not kept."""
        response = self._response
        if response is not None and not response.has_head:
            response.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Take the end of a head, unless it is that of an informational response."""
        response = self._response
        if response is None:
            return
        response.status = self._parser.get_status_code()
        if response.status < _FINAL:
            response.headers = []
            return
        # Only where more than a head may have arrived so far is it worth counting what is one.
        if self._unstructured > MAX_HEAD_BYTES and _count_bytes(response.headers) > MAX_HEAD_BYTES:
            self._refuse(_HEAD_TOO_LARGE)
        response.has_head = self._has_news = True
        self._unstructured = 0
        if self._is_bodiless:
            self.on_message_complete()

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._unstructured = 0
        response = self._response
        if response is not None and not response.is_complete:
            self._has_news = True
            response.pieces.append(piece)

    def on_message_complete(self) -> None:
        """Take the end of the response."""
        response = self._response
        if response is not None and response.has_head:
            response.is_complete = self._has_news = True
            self._is_kept_alive = self._parser.should_keep_alive()

    def _refuse(self, why: str) -> None:
        """Stop the parser; what it raises for this is caught where it is fed."""
        failure = ConnectionBroken(why)
        self._lose(failure)
        raise failure


def _count_bytes(headers: list[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + _HEADER_SIGNS for name, value in headers)


def _ends_with_connection(response: Response) -> bool:
    """Tell whether a body has no other end than that of the connection."""
    return not any(name in {b"content-length", b"transfer-encoding"} for name, _ in response.headers)
