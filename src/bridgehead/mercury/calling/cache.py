"""Cache: completions that are kept in memory for a while, and calls under way that others may share.

Bounded in entries, bytes and age; the one that was not used for longest goes first. What is kept is only ever
a whole answer; who asks decides whether a kept one will do.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from bridgehead.runtime.clock import Clock

from ..completion import COMPLETE, Completed
from ..settings import MercurySettings
from .kept import Kept, keep

_OVERHEAD = 512
"""Bytes that an entry takes beside its texts, roughly."""
_BYTES_A_CHARACTER = 4
"""At most."""

Key = tuple[str, bytes]
"""Where a request goes, and everything that it asks."""


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
        self._seconds = settings.cache_ttl
        self._most_entries = settings.cache_max_size
        self._most_bytes = settings.cache_max_bytes
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self._shared: dict[Key, Shared] = {}
        self.size = 0
        """How many bytes are kept."""
        self.hits = 0
        self.misses = 0
        """Counted by who asks, since a call may ask twice."""
        self.joined = 0
        """Calls that shared the upstream request of another one."""

    @property
    def entries(self) -> int:
        """How many completions are kept."""
        return len(self._kept)

    def get(self, key: Key, now: float) -> Kept | None:
        """Give the kept answer to a request."""
        kept = self._kept.get(key)
        if kept is not None:
            if now - kept.since < self._seconds:
                self._kept.move_to_end(key)
                self.hits += 1
                return kept
            self._drop(key)
        return None

    def put(self, key: Key, completed: Completed) -> None:
        """Keep an answer, if it is whole and not too large."""
        if completed.metadata.finish_reason not in COMPLETE:
            return
        kept = keep(completed, self._clock.monotonic())
        if _size(key, kept) > self._most_bytes:
            return
        self._drop(key)
        self._kept[key] = kept
        self.size += _size(key, kept)
        while len(self._kept) > self._most_entries or self.size > self._most_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.size -= _size(key, kept)

    async def share(
        self, key: Key, make: Callable[[], Coroutine[Any, Any, Completed]]
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


def _size(key: Key, kept: Kept) -> int:
    """Give the bytes that an entry takes: what was asked, the answer, and its result, which has it too."""
    calls = kept.completed.tool_calls or ()
    characters = len(kept.completed.content) + sum(len(call.function.arguments) for call in calls)
    return _OVERHEAD + len(key[1]) + kept.size + _BYTES_A_CHARACTER * characters
