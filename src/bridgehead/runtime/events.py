"""Events: a feed of events in the process, for webhooks, operators and the dashboard.

    events.publish("breaker.opened", bridge="mercury", provider="local")

One feed per process. Without listeners, publishing checks one empty list, so hot paths may do it.
Events carry no content of calls, unless the settings ask for it, and never a secret. Publish from the event
loop's thread.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct

from . import logs

MAX_WAITING = 1000
"""Events queued for one listener; beyond that the oldest are dropped."""
_CALLS = ("call.ended", "call.failed")
TYPES = (
    *_CALLS,
    "budget.threshold",
    "budget.refused",
    "budget.uncertain",
    "breaker.opened",
    "breaker.closed",
    "far_side.lost",
    "far_side.returned",
    "store.lost",
    "store.returned",
)
"""The types that the host and our bridges publish; bridges of others may have more."""


class Event(Struct, frozen=True, omit_defaults=True):
    """Something that happened."""

    id: str
    type: str
    """Such as `call.failed`; the part before the dot is its subject."""
    time: float
    """In seconds since 1970."""
    data: dict[str, Any] = {}

    def encode(self) -> bytes:
        """Encode as JSON, without secrets."""
        encoded = msgspec.json.encode(self, enc_hook=str)
        # Fast path: no known secret, and no address that could contain a password.
        if not logs.may_show_secret(encoded) and b"@" not in encoded:
            return encoded
        return msgspec.json.encode(msgspec.structs.replace(self, data=logs.clean(self.data)))


def matches(patterns: tuple[str, ...], kind: str) -> bool:
    """Whether a pattern matches a type of event; without patterns every type matches."""
    if not patterns:
        return True

    return any(fnmatchcase(kind, pattern) for pattern in patterns)


class Listener:
    """A bounded queue for one listener; a slow listener loses its own oldest events and delays no other."""

    def __init__(self, patterns: tuple[str, ...] = (), limit: int = MAX_WAITING) -> None:
        self.patterns = patterns
        self._waiting: deque[Event] = deque()
        self._limit = limit
        self._woken = asyncio.Event()
        self.dropped = 0
        """Events that were dropped because the listener was too slow."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: Event) -> None:
        """Queue an event of a wanted type; drop the oldest if the queue is full."""
        if not matches(self.patterns, event.type):
            return
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(event)
        self._woken.set()

    async def take(self, limit: int) -> list[Event]:
        """Wait for events; return up to `limit` of them, oldest first."""
        while not self._waiting:
            self._woken.clear()
            await self._woken.wait()
        return [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]


class Feed:
    """The listeners of a process."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._count = 0
        self._process = ""
        self.with_content = False
        """Whether publishers add arguments and results."""

        self.has_call_listeners = False
        """Whether a listener wants events of calls. Kept up to date because every call checks it."""

    def join(self, listener: Listener) -> None:
        """Add a listener."""
        self._listeners.append(listener)
        self._update_call_listeners()

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        self._update_call_listeners()

    def _update_call_listeners(self) -> None:
        self.has_call_listeners = any(
            matches(listener.patterns, kind) for listener in self._listeners for kind in _CALLS
        )

    def publish(self, kind: str, **data: Any) -> None:
        """Send an event to all listeners."""
        if not self._listeners:
            return
        if not self._process:
            self._process = secrets.token_hex(6)
        self._count += 1
        event = Event(f"evt_{self._process}_{self._count}", kind, round(time.time(), 3), data)
        for listener in self._listeners:
            listener.put(event)


feed = Feed()
"""The feed of this process."""


def publish(kind: str, **data: Any) -> None:
    """Send an event to all listeners of this process."""
    feed.publish(kind, **data)
