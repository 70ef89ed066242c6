"""Connection: one HTTP/1.1 connection, with one request on it at a time.

What comes is kept until it is read, and when too much is kept the socket is not read on.
"""

from __future__ import annotations

import asyncio
from typing import cast

import httptools

from .transport import ConnectionBroken

MOST_KEPT = 256 * 1024
"""Bytes of a body that are kept unread; above this the sender has to wait."""
_FINAL = 200


class Connection(asyncio.Protocol):
    """A connection, and the answer that is coming on it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._kept = 0
        self._is_paused = False
        self._has_head = False
        self._is_complete = True
        self._stays = True
        """Whether the connection goes on after the answer."""
        self._lost: str | None = None
        self.status = 0
        self.idle_since = 0.0

    # --- asking --------------------------------------------------------------------------------------------

    @property
    def is_reusable(self) -> bool:
        """Tell whether another request can be sent."""
        return self._lost is None and self._is_complete and self._stays

    @property
    def is_alive(self) -> bool:
        """Tell whether the other side still holds it open."""
        return self._lost is None

    def send(self, request: bytes) -> None:
        """Send a request; what comes from now on is its answer."""
        self._parser = httptools.HttpResponseParser(self)
        self._headers = {}
        self._pieces.clear()
        self._kept = 0
        self._has_head = self._is_complete = False
        if self._transport is None or self._lost is not None:
            raise ConnectionBroken(self._lost or "it was never made")
        self._transport.write(request)

    async def head(self) -> None:
        """Wait for the head of the answer."""
        while not self._has_head:
            if self._lost is not None:
                raise ConnectionBroken(self._lost)
            await self._something(None)

    def header(self, name: str) -> str | None:
        """Give the value of a header."""
        value = self._headers.get(name.encode())
        return None if value is None else value.decode("latin-1")

    async def read(self, seconds: float) -> bytes:
        """Give what has come of the body; nothing is the end."""
        while not self._pieces:
            if self._is_complete:
                return b""
            if self._lost is not None:
                raise ConnectionBroken(self._lost)
            await self._something(seconds)
        found = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._kept = 0
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return found

    def close(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _something(self, seconds: float | None) -> None:
        """Wait until something has happened."""
        waiter = self._waiter = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, _expire, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- what the event loop calls -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast("asyncio.Transport", transport)  # of whichever event loop, it is a stream's

    def data_received(self, data: bytes) -> None:
        """Take bytes in."""
        if self._is_complete:
            self._give_up("the other side spoke without being asked")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            self._give_up(f"what came is not HTTP ({type(problem).__name__})")
        self._wake()

    def _give_up(self, why: str) -> None:
        self._lost = why
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that there is no connection any more."""
        if self._has_head and not self._is_complete and self._ends_with_connection:
            self._is_complete = True
        if self._lost is None:
            self._lost = "the other side closed it" if exc is None else str(exc) or type(exc).__name__
        self._wake()

    @property
    def _ends_with_connection(self) -> bool:
        """Tell whether the body has no other end than that of the connection."""
        return not {b"content-length", b"transfer-encoding"} & self._headers.keys()

    # --- what the parser calls -----------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Take the end of the head."""
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= _FINAL
        if not self._has_head:
            self._headers = {}

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(piece)
        self._kept += len(piece)
        if self._kept > MOST_KEPT and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """Take the end of the answer."""
        self._is_complete = self._has_head
        self._stays = self._parser.should_keep_alive()


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
