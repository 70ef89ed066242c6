"""Response: what came back for one request so far, and whoever waits for more of it.

The connection fills it in and the caller reads it. Unread bytes are bounded: above `MAX_UNREAD` the
connection stops reading from the socket until the caller has caught up.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

MAX_UNREAD = 256 * 1024


class ConnectFailed(Exception):
    """There is no connection, so nothing was sent."""


class ConnectionBroken(Exception):
    """The connection broke while a request was under way; the other side may have acted on it."""


class BodyTooLarge(Exception):
    """The body has more bytes than the caller allows."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the body has more than {max_bytes} bytes")


class Source(Protocol):
    """Where the bytes of a body come from, and how to hold them back."""

    def pause_reading(self) -> None:
        """Stop reading from the socket."""

    def resume_reading(self) -> None:
        """Read from the socket again."""


class Response:
    """The response to one request; its head is there when the caller gets it."""

    def __init__(self, source: Source) -> None:
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._waiter: asyncio.Future[None] | None = None
        self.pieces: list[bytes] = []
        """What has come of the body and was not read yet; the connection adds to it."""
        self._unread = 0
        self._is_paused = False
        self._failure: Exception | None = None
        """Why no more comes, where it is not complete."""
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        """Names in lower case, in the order in which they came."""
        self.has_head = False
        self.is_complete = False

    def header(self, name: str) -> str | None:
        """Return the last value of a header; the name is in lower case."""
        wanted = name.encode()
        values = [value for found, value in self.headers if found == wanted]
        return values[-1].decode("latin-1") if values else None

    async def read(self, seconds: float | None = None) -> bytes:
        """Return what has come of the body, waiting this long for something; nothing is the end.

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
        """Return the whole body, waiting this long for each piece; raises `BodyTooLarge` as well."""
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
            if self.is_complete and not self.pieces:  # nothing follows, so nobody is asked once more
                break
        return b"".join(pieces)

    # --- what the connection calls -------------------------------------------------------------------------

    async def wait_for_head(self) -> None:
        """Wait for the head, as long as the caller's own time limit lets it."""
        while not self.has_head:
            if self._failure is not None:
                raise self._failure
            await self._wait(None)

    def count(self, size: int) -> None:
        """Count what arrived, framing included; too much that is unread holds the other side back."""
        self._unread += size
        if self._unread > MAX_UNREAD and not self._is_paused:
            self._is_paused = True
            self._source.pause_reading()

    def fail(self, failure: Exception) -> None:
        """Take in that no more comes; the first reason is the one that counts."""
        if self._failure is None:
            self._failure = failure
        self.wake()

    def wake(self) -> None:
        """Let whoever waits look again."""
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
