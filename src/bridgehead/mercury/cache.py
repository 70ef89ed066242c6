"""Cache: completions that are kept in memory for a while, and calls under way that others may share.

Bounded in entries, bytes and age. What is kept is only ever a whole answer; who asks decides whether a kept
one will do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from hashlib import blake2b
from typing import Any

from cachetools import TTLCache
from msgspec import Struct

from bridgehead.runtime.clock import Clock

from .answers import COMPLETE, Completed, from_cache
from .settings import MercurySettings

_OVERHEAD = 512
"""Bytes that an entry takes beside its texts, roughly."""


class Kept(Struct, frozen=True):
    """An answer and when it came."""

    completed: Completed
    since: float
    size: int


class Shared:
    """A call under way, and how many wait for it."""

    def __init__(self, task: asyncio.Task[Completed]) -> None:
        self.task = task
        self.waiting = 0


class Cache:
    """Completions by their whole request."""

    def __init__(self, settings: MercurySettings, clock: Clock) -> None:
        self.is_enabled = settings.cache_enabled
        self._clock = clock
        self._most_entries = settings.cache_max_size
        self._most_bytes = settings.cache_max_bytes
        self._kept: TTLCache[bytes, Kept] = TTLCache(
            settings.cache_max_bytes, settings.cache_ttl, clock.monotonic, lambda kept: kept.size
        )
        self._shared: dict[bytes, Shared] = {}
        self.hits = 0
        self.misses = 0
        self.joined = 0
        """Calls that shared the upstream request of another one."""

    @property
    def entries(self) -> int:
        """How many completions are kept."""
        return len(self._kept)

    @property
    def size(self) -> int:
        """How many bytes they take."""
        return int(self._kept.currsize)

    def get(self, key: bytes) -> Completed | None:
        """Give the kept answer to a request, with its age."""
        kept = self._kept.get(key)
        if kept is None:
            self.misses += 1
            return None
        self.hits += 1
        return from_cache(kept.completed, self._clock.monotonic() - kept.since)

    def put(self, key: bytes, completed: Completed) -> None:
        """Keep an answer, if it is whole and not too large."""
        if completed.metadata.finish_reason not in COMPLETE:
            return
        calls = completed.tool_calls or ()
        size = _OVERHEAD + 4 * len(completed.content) + sum(4 * len(c.function.arguments) for c in calls)
        if size > self._most_bytes:
            return
        self._kept[key] = Kept(completed, self._clock.monotonic(), size)
        while len(self._kept) > self._most_entries:
            self._kept.popitem()

    async def share(
        self, key: bytes, make: Callable[[], Coroutine[Any, Any, Completed]]
    ) -> tuple[Completed, bool]:
        """Give the answer to a request, from the same one if it is under way; tells whether it was.

        The request goes on as long as somebody waits for it, and is cancelled with the last one.
        """
        shared = self._shared.get(key)
        is_joined = shared is not None
        if shared is None:
            shared = self._shared[key] = Shared(asyncio.create_task(make()))
            shared.task.add_done_callback(lambda _: self._shared.pop(key, None))
        else:
            self.joined += 1
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task), is_joined
        finally:
            shared.waiting -= 1
            if not shared.waiting and not shared.task.done():
                self._shared.pop(key, None)
                shared.task.cancel()


def key_of(path: str, body: bytes) -> bytes:
    """Give the key of a request: over its endpoint and everything that is asked."""
    return blake2b(body, digest_size=16, key=path.encode()).digest()
