"""Connection: one HTTP/1.1 connection, with one request on it at a time.

What comes is kept until it is read, and when too much is kept the socket is not read on.
"""

from __future__ import annotations

import asyncio
from typing import cast

import httptools

from .answer import MOST_KEPT, Answer
from .transport import ConnectionBroken, Outgoing

_FINAL = 200


class Connection(Answer, asyncio.Protocol):
    """A connection, and the answer that is coming on it."""

    def __init__(self, constant: str) -> None:
        super().__init__()
        self._constant = constant
        """The headers that every request has."""
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._is_paused = False
        self._is_complete = True
        self._stays = True
        """Whether the connection goes on after the answer."""
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

    def send(self, request: Outgoing) -> None:
        """Send a request; what comes from now on is its answer."""
        self._parser = httptools.HttpResponseParser(self)
        self._headers = {}
        self._pieces.clear()
        self._kept = 0
        self._has_head = self._is_complete = False
        if self._lost is not None:
            raise self._lost
        if self._transport is None:
            raise ConnectionBroken("it was never made")
        lines = "".join([f"{name}: {value}\r\n" for name, value in request.headers.items()])
        head = f"{request.method} {request.target} HTTP/1.1\r\n{self._constant}{lines}"
        if request.body:
            head += f"Content-Length: {len(request.body)}\r\n"
        self._transport.write(f"{head}\r\n".encode("latin-1") + request.body)

    def _was_read(self, kept: int) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def close(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

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
        self._lose(why)
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take in that there is no connection any more."""
        if self._has_head and not self._is_complete and self._ends_with_connection:
            self._is_complete = True
        self._lose("the other side closed it" if exc is None else str(exc) or type(exc).__name__)

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
