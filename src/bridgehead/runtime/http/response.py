"""Response: the part of a response that has arrived, and the wait for the rest.

The connection fills it in and the caller reads it. Unread bytes are bounded: above `MAX_UNREAD` the
connection stops reading from the socket until the caller has caught up.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

MAX_UNREAD = 256 * 1024


class ConnectFailed(Exception):
    """No connection could be opened, so nothing was sent."""


class ConnectionBroken(Exception):
    """The connection broke during a request; the peer may have acted on it."""


class BodyTooLarge(Exception):
    """The body has more bytes than the caller allows."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the body has more than {max_bytes} bytes")


class Source(Protocol):
    """The connection of a response. A protocol, because `connection` imports this module."""

    def pause_reading(self) -> None:
        """Stop reading from the socket."""

    def resume_reading(self) -> None:
        """Read from the socket again."""


class Response:
    """The response to one request; its head is complete when the caller gets it."""

    def __init__(self, source: Source) -> None:
        self._loop = asyncio.get_running_loop()
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
        wanted = name.encode()
        values = [value for key, value in self.headers if key == wanted]
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

    async def read_body(self, max_bytes: int, seconds: float | None = None) -> bytes:
        """Return the whole body, waiting up to `seconds` for each piece; also raises `BodyTooLarge`."""
        if not self.is_complete:
            length = self.header("content-length")
            if length is not None and int(length) > max_bytes:
                raise BodyTooLarge(max_bytes)
        pieces: list[bytes] = []
        size = 0
        while piece := await self.read(seconds):
            size += len(piece)
            if size > max_bytes:
                raise BodyTooLarge(max_bytes)
            pieces.append(piece)
            if self.is_complete and not self.pieces:  # saves one more call of read
                break
        return b"".join(pieces)

    # --- what the connection calls -------------------------------------------------------------------------

    async def wait_for_head(self) -> None:
        """Wait for the head, without a time limit of its own."""
        while not self.has_head:
            if self._failure is not None:
                raise self._failure
            await self._wait(None)

    def count(self, size: int) -> None:
        """Count bytes that arrived, framing included; above `MAX_UNREAD` the socket is not read."""
        self._unread += size
        if self._unread > MAX_UNREAD and not self._is_paused:
            self._is_paused = True
            self._source.pause_reading()

    def fail(self, failure: Exception) -> None:
        """Fail with the first reason that is reported."""
        if self._failure is None:
            self._failure = failure
        self.wake()

    def wake(self) -> None:
        """Wake the reader to look again."""
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
