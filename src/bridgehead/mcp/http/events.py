"""Events: server-sent events, and the stream that keeps them so that a client can resume.

An `EventStream` is what was said on one stream of a session, in order and bounded. Whoever delivers it reads
from a position on; a client that comes back names the last event it saw. No I/O here.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ..limits import Limits

KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
"""The headers of a response that is an event stream; no proxy may hold it back or change it."""


def event(message: bytes, event_id: str | None = None, name: bytes = b"message") -> bytes:
    """Encode one message as an event."""
    if event_id is None:
        return b"event: %b\ndata: %b\n\n" % (name, message)
    return b"event: %b\nid: %b\ndata: %b\n\n" % (name, event_id.encode(), message)


def priming(event_id: str, retry_ms: int) -> bytes:
    """Encode the empty event that lets a client resume before anything was said."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (event_id.encode(), retry_ms)


class EventStream:
    """The events of one stream, numbered from 1; number 0 is its beginning."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self._limits = limits
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._more = asyncio.Event()
        self.reader: object | None = None
        """Who delivers the stream now; whoever else still thinks that it does must stop."""
        self.has_ended = False

    def event_id(self, number: int) -> str:
        """Name a position so that a client can come back to it."""
        return f"{self.name}/{number}"

    def append(self, message: bytes) -> bytes:
        """Keep a message and return it as an event. The oldest go when there are too many."""
        self._last += 1
        encoded = event(message, self.event_id(self._last))
        self._events.append((self._last, encoded))
        self._bytes += len(encoded)
        while len(self._events) > self._limits.resume_events or (
            self._bytes > self._limits.resume_bytes and len(self._events) > 1
        ):
            self._bytes -= len(self._events.popleft()[1])
        self._more.set()
        return encoded

    def end(self) -> None:
        """Say that nothing more will come."""
        self.has_ended = True
        self._more.set()

    def wake(self) -> None:
        """Let whoever waits for more look around: its client may be gone."""
        self._more.set()

    def after(self, number: int) -> list[tuple[int, bytes]]:
        """Return the kept events that come after a position."""
        return [(n, data) for n, data in self._events if n > number]

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return self._last

    async def more(self, within: float) -> bool:
        """Wait until something new was said or the stream ended; False if that took too long."""
        try:
            await asyncio.wait_for(self._more.wait(), within)
        except TimeoutError:
            return False
        self._more.clear()
        return True
