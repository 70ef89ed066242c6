"""Events: what happens, for whoever wants to hear of it at once: a webhook, an operator, a dashboard.

    events.publish("breaker.opened", bridge="mercury", provider="local")

One feed for a process. While nobody listens, publishing is one look at an empty list, so hot paths may do it.
Events carry no content of calls, unless the settings ask for it, and never a secret. Publish from the event
loop's thread.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import msgspec
from msgspec import Struct

from bridgehead.mcp.lazy_imports import asyncio

from . import logs

MOST_WAITING = 1000
"""Events that wait for one listener; the oldest make room."""
_CALLS = ("call.ended", "call.failed")


class Event(Struct, frozen=True, omit_defaults=True):
    """Something that happened."""

    id: str
    type: str
    """What it was, such as `call.failed`; the part before the dot is its subject."""
    time: float
    """In seconds since 1970."""
    data: dict[str, Any] = {}

    def encode(self) -> bytes:
        """Write it as JSON, without secrets."""
        encoded = msgspec.json.encode(self, enc_hook=str)
        if not logs.may_show_secret(encoded) and b"@" not in encoded:  # which an address with a password has
            return encoded
        return msgspec.json.encode(msgspec.structs.replace(self, data=logs.clean(self.data)))


def matches(patterns: tuple[str, ...], kind: str) -> bool:
    """Tell whether one of some patterns fits a type of event; no pattern at all fits every type."""
    if not patterns:
        return True
    from fnmatch import fnmatchcase

    return any(fnmatchcase(kind, pattern) for pattern in patterns)


class Listener:
    """What waits for one who listens: bounded, so that a slow one costs its own events and nothing else."""

    def __init__(self, patterns: tuple[str, ...] = (), most: int = MOST_WAITING) -> None:
        self.patterns = patterns
        self._waiting: deque[Event] = deque()
        self._most = most
        self._woken = asyncio.Event()
        self.dropped = 0
        """Events that it did not take in time, since it began."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: Event) -> None:
        """Take an event in, if it is of a wanted type; the oldest is dropped where there is no room."""
        if not matches(self.patterns, event.type):
            return
        if len(self._waiting) >= self._most:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(event)
        self._woken.set()

    async def take(self, most: int) -> list[Event]:
        """Wait for events, and return some of them in their order."""
        while not self._waiting:
            self._woken.clear()
            await self._woken.wait()
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]


class Feed:
    """The listeners of a process."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._count = 0
        self._process = ""
        self.with_content = False
        """Whether publishers add what was asked and answered."""

        self.hears_calls = False
        """Whether anybody listens to calls, of which there are many; asked after each of them."""

    def join(self, listener: Listener) -> None:
        """Add a listener."""
        self._listeners.append(listener)
        self._find_who_hears_calls()

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        self._find_who_hears_calls()

    def _find_who_hears_calls(self) -> None:
        self.hears_calls = any(
            matches(listener.patterns, kind) for listener in self._listeners for kind in _CALLS
        )

    def publish(self, kind: str, **data: Any) -> None:
        """Tell all listeners of something that has just happened."""
        if not self._listeners:
            return
        event = Event(self._next_id(), kind, round(time.time(), 3), data)
        for listener in self._listeners:
            listener.put(event)

    def _next_id(self) -> str:
        if not self._process:
            import secrets  # not before there is somebody to tell

            self._process = secrets.token_hex(6)
        self._count += 1
        return f"evt_{self._process}_{self._count}"


feed = Feed()
"""The feed of this process."""


def publish(kind: str, **data: Any) -> None:
    """Tell whoever listens in this process of something that has just happened."""
    feed.publish(kind, **data)
