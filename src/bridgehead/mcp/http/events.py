"""Events: server-sent events, and the streams that keep them so that a client can resume. No I/O.

An `EventStream` holds the latest messages of one stream of a session, in order and bounded. A client that
reconnects names the last event it saw and gets those after it. Kept events are charged to the caller, and are
dropped first if memory is short.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic

from ..limits import Limits
from .accounts import Accounts

KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
"""Response headers of an event stream; `x-accel-buffering` stops nginx from buffering it."""


def event(message: bytes, event_id: str | None = None, name: bytes = b"message") -> bytes:
    """Encode one message as an event."""
    identity = b"" if event_id is None else b"\nid: %b" % event_id.encode()
    return b"".join((b"event: ", name, identity, b"\ndata: ", message, b"\n\n"))


def priming(event_id: str, retry_ms: int) -> bytes:
    """Encode the empty first event (revision 2025-11-25), which gives the client an id to resume from."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (event_id.encode(), retry_ms)


class EventStream:
    """The events of one stream, numbered from 1; position 0 is its beginning."""

    def __init__(self, name: str, limits: Limits, accounts: Accounts, caller: str) -> None:
        self.name = name
        self._limits = limits
        self._accounts = accounts
        self._caller = caller
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._more = asyncio.Event()
        self.reader: object | None = None
        """The current writer to the client, by identity; earlier writers must stop."""
        self.has_ended = False
        self.ended_at = 0.0
        """When it ended, by the monotonic clock."""

    def event_id(self, number: int) -> str:
        """Return the id of a position, for Last-Event-ID."""
        return f"{self.name}/{number}"

    def append(self, message: bytes) -> bytes:
        """Keep a message and return its event; drop the oldest above `resume_events` or `resume_bytes`."""
        self._last += 1
        encoded = event(message, self.event_id(self._last))
        if self.has_ended:
            return encoded  # its session is closed: nobody can resume it
        if not self._events:
            self._accounts.keep_events(self._caller, self)
        self._events.append((self._last, encoded))
        before = self._bytes
        self._bytes += len(encoded)
        while len(self._events) > self._limits.resume_events or (
            self._bytes > self._limits.resume_bytes and len(self._events) > 1
        ):
            self._bytes -= len(self._events.popleft()[1])
        # Last, since this may drop the events of this very stream.
        self._charge(self._bytes - before)
        self._more.set()
        return encoded

    def _charge(self, size: int) -> None:
        if size > 0:
            self._accounts.charge(self._caller, size)
        elif size:
            self._accounts.release(self._caller, -size)

    def drop(self) -> None:
        """Drop the kept events; a client that resumes gets only newer ones."""
        if self._events:
            self._events.clear()
            size, self._bytes = self._bytes, 0
            self._accounts.forget_events(self._caller, self)
            self._charge(-size)

    def end(self) -> None:
        """Mark the stream as complete."""
        self.has_ended = True
        self.ended_at = monotonic()
        self._more.set()

    def wake(self) -> None:
        """Make `more` return, so that its caller notices a client that hung up."""
        self._more.set()

    def events_after(self, number: int) -> list[tuple[int, bytes]]:
        """Return the kept events that come after a position."""
        return [(n, data) for n, data in self._events if n > number]

    @property
    def last_number(self) -> int:
        """The number of the newest event."""
        return self._last

    async def wait_for_more(self, within: float) -> bool:
        """Wait for an event, the end or `wake`; False after this many seconds."""
        try:
            await asyncio.wait_for(self._more.wait(), within)
        except TimeoutError:
            return False
        self._more.clear()
        return True
