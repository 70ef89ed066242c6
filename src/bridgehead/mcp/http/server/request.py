"""Http1Request: a request of one connection, from its head to the last byte of its response.

Runs the handler for it. Everything is written through the connection, which keeps the order of responses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Protocol

from ..message import BODYLESS, ClientGone, Handler, HeaderPairs, Request, Response, ResponseStream

log = logging.getLogger("bridgehead.mcp.http")

STATUS_LINES = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}


class Shared(Protocol):
    """What the connections of a server have in common."""

    handler: Handler

    def date(self) -> bytes:
        """Return the header line that says what time it is."""


class Http1Connection(Protocol):
    """The connection of a request: what it came in on, and what its response goes out on."""

    scheme: str
    address: str
    is_ending: bool
    loop: asyncio.AbstractEventLoop
    writable: asyncio.Future[None] | None

    @property
    def connections(self) -> Shared:
        """What it has in common with the others."""

    def write(self, data: bytes) -> None:
        """Write at the end of this turn of the loop."""

    def close(self) -> None:
        """Close, with everything written that is still to be."""

    def resume_reading(self) -> None:
        """Take more from the client."""

    def is_last(self, request: Http1Request) -> bool:
        """Tell whether the connection is closed behind the response to a request."""

    def finish(self, request: Http1Request, *, is_last: bool) -> None:
        """Go on to the next request after a response, or close."""


class Http1Request(Request):
    """One request, and the task that answers it where that takes waiting."""

    __slots__ = ("_is_continued", "_is_finished", "_protocol", "_waiter", "is_http11", "keep_alive", "task")

    def __init__(
        self,
        protocol: Http1Connection,
        method: str,
        target: tuple[bytes, str, bytes],
        pairs: HeaderPairs,
        *,
        is_http11: bool,
        keep_alive: bool,
    ) -> None:
        raw_path, path, query = target
        Request.__init__(self, method, raw_path, path, query, pairs)  # super() costs more
        self.scheme = protocol.scheme
        self.address = protocol.address
        self._protocol = protocol
        self.is_http11 = is_http11
        self.keep_alive = keep_alive
        self.task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_continued = False
        self._is_finished = False

    def start(self) -> bool:
        """Serve this request, unless it is being served; tell whether it has its response already."""
        if self.task is not None:
            return False
        try:
            outcome = self._protocol.connections.handler(self)
        except Exception:
            log.exception("the handler failed")
            self._fail()
            return True
        if isinstance(outcome, Response):
            self._respond(outcome)
            return True
        if self.is_complete:
            self._protocol.resume_reading()  # so that its client can be heard hanging up
        self.task = self._protocol.loop.create_task(self._run(outcome))
        return False

    async def _run(self, work: Coroutine[Any, Any, Response | ResponseStream]) -> None:
        try:
            response = await work
            if not isinstance(response, Response):
                await response.close()
            elif self.can_write:
                self._respond(response)
        except ClientGone:
            log.debug("a client hung up before it had sent its request")
        except Exception:
            log.exception("the handler failed")
        self._fail()

    def _fail(self) -> None:
        """See to it that there is a response, or that a broken one does not look like a whole one."""
        if self._is_finished:
            return
        if not self.is_gone:
            if self.stream is None:
                self._protocol.write(STATUS_LINES[500] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            else:
                self._protocol.close()
        self.finish(is_last=not self.is_gone)

    # --- the body ------------------------------------------------------------------------------------------

    def take(self, piece: bytes) -> int:
        """Keep a piece of the body; returns how much is unread."""
        if not self.body:
            self.body = piece
        elif isinstance(self.body, bytearray):
            self.body += piece
        else:  # grown in place from the second piece on: joining anew would cost their number squared
            self.body = bytearray(self.body)
            self.body += piece
        if self._waiter is not None:
            self._wake()
        return len(self.body)

    def complete(self) -> None:
        """Note that the body has ended."""
        if isinstance(self.body, bytearray):
            self.body = bytes(self.body)
        self.is_complete = True
        if self._waiter is not None:
            self._wake()

    def hang_up(self) -> None:
        """Note that the client is gone."""
        super().hang_up()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        """Return the next piece of the body, and nothing after the last. Raises ClientGone."""
        while not self.body and not self.is_complete and self.can_write:
            self._invite_body()
            self._waiter = self._protocol.loop.create_future()
            await self._waiter
        if not self.can_write:
            raise ClientGone
        piece, self.body = bytes(self.body), b""
        self._protocol.resume_reading()
        return piece

    def _invite_body(self) -> None:
        """Tell a client that waits to be told (`Expect: 100-continue`) that its body is wanted."""
        if self._is_continued or self.stream is not None:
            return
        self._is_continued = True
        if self.headers.get(b"expect", b"").lower() == b"100-continue":
            self._protocol.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # --- the response --------------------------------------------------------------------------------------

    def _respond(self, response: Response) -> None:
        """Send a whole response, in one piece."""
        status, body, headers = response
        protocol = self._protocol
        lines = _write_headers(tuple(headers))
        if self.extra_headers:  # of this request alone, so there is no use in remembering them
            lines += b"".join([b"%b: %b\r\n" % pair for pair in self.extra_headers])
        length = b"" if status in BODYLESS else b"content-length: %d\r\n" % len(body)
        is_last = not self.keep_alive or (protocol.is_ending and protocol.is_last(self))
        end = b"connection: close\r\n\r\n" if is_last else b"\r\n"
        shown = body if self.method != "HEAD" else b""
        protocol.write(
            b"".join((STATUS_LINES[status], protocol.connections.date(), length, lines, end, shown))
        )
        self.finish(is_last=is_last)

    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        """Send the head of a response whose body comes in pieces."""
        has_length = status in BODYLESS or any(name == b"content-length" for name, _ in headers)
        is_chunked = self.is_http11 and not has_length
        if not (is_chunked or has_length):
            self.keep_alive = False  # an HTTP/1.0 client knows the end only by the end of the connection
        parts = [STATUS_LINES[status], self._protocol.connections.date()]
        parts += [b"%b: %b\r\n" % pair for pair in (*headers, *self.extra_headers)]
        if is_chunked:
            parts.append(b"transfer-encoding: chunked\r\n")
        is_last = self._protocol.is_last(self)
        parts.append(b"connection: close\r\n\r\n" if is_last else b"\r\n")
        self.stream = stream = Http1Stream(
            self, self._protocol, status, is_chunked=is_chunked, is_last=is_last
        )
        if self.can_write:
            self._protocol.write(b"".join(parts))
        return stream

    @property
    def can_write(self) -> bool:
        """Whether a response, or more of it, can still be sent."""
        return not (self.is_gone or self._is_finished)

    def abort(self) -> None:
        """Close the connection after what was sent so far."""
        self.finish(is_last=True)

    def finish(self, *, is_last: bool) -> None:
        """Let the connection go on to the next request, or close: this one has its response."""
        self._is_finished = True
        if self._waiter is not None:
            self._wake()
        self._protocol.finish(self, is_last=is_last)


@lru_cache(maxsize=64)
def _write_headers(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Write header lines; nearly every response has the same ones."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


class Http1Stream(ResponseStream):
    """A response in pieces: in chunks for HTTP/1.1, else until its length or the connection ends."""

    __slots__ = ("_has_body", "_is_chunked", "_is_last", "_protocol", "_request")

    def __init__(
        self,
        request: Http1Request,
        protocol: Http1Connection,
        status: int,
        *,
        is_chunked: bool,
        is_last: bool,
    ) -> None:
        super().__init__(status)
        self._request = request
        self._protocol = protocol
        self._is_chunked = is_chunked
        self._is_last = is_last
        self._has_body = request.method != "HEAD"

    async def write(self, data: bytes) -> None:
        """Send a piece, waiting while the client is slow to read."""
        if not self._request.can_write:
            return
        if data and self._has_body:
            self._protocol.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)
        if self._protocol.writable is not None:
            await asyncio.shield(self._protocol.writable)

    async def close(self) -> None:
        """End the response in good order."""
        if self._request.can_write:
            if self._is_chunked and self._has_body:
                self._protocol.write(b"0\r\n\r\n")
            self._request.finish(is_last=self._is_last or self._protocol.is_last(self._request))
