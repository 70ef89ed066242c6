"""Cache: completions in memory, and the requests in flight that identical calls share.

Bounded in entries, bytes and age, with LRU eviction. Only complete answers are stored. The caller decides
whether a cached answer may be used.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bridgehead.mcp import NEWEST_HANDSHAKE, Encoded, Revision
from bridgehead.runtime.timing import Clock

from ..completion import Completion
from ..settings import MercurySettings
from .call import CacheKey

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of all cached completions: 64 KiB for each, with the default of CACHE_MAX_SIZE."""
_ENTRY_OVERHEAD = 512
"""Estimated bytes of an entry beside its texts."""
_BYTES_PER_CHARACTER = 4
"""The maximum in Python's strings (UCS-4)."""
_AGE = b'"cache_age_seconds":'
"""The bytes before the age; inside a text they cannot occur, since quotes are escaped there."""


class CachedCompletion(Struct, frozen=True):
    """A stored answer, encoded once: a hit only inserts its age between the parts."""

    completion: Completion
    since: float
    parts: list[bytes]
    size: int

    def at(self, now: float) -> Completion:
        """Return the completion with its age."""
        age = round(now - self.since, 3)
        return replace(self.completion, metadata=replace(self.completion.metadata, cache_age_seconds=age))

    def to_result(self, now: float, revision: Revision) -> Encoded:
        """Return the result of a tool."""
        if not revision.structured_output:
            return self.at(now).to_result(revision)
        return Encoded((b"%b%.3f" % (_AGE, now - self.since)).join(self.parts))


class SharedRequest:
    """A request under way, and the number of calls that wait for it."""

    def __init__(self, task: asyncio.Task[Completion]) -> None:
        self.task = task
        self.waiting = 0


class Cache:
    """Completions by their complete request."""

    def __init__(self, settings: MercurySettings, clock: Clock) -> None:
        self.is_enabled = settings.cache_enabled
        self._clock = clock
        self._ttl = settings.cache_ttl
        self._max_entries = settings.cache_max_size
        self._max_bytes = MAX_BYTES
        self._entries: OrderedDict[CacheKey, CachedCompletion] = OrderedDict()
        self._shared: dict[CacheKey, SharedRequest] = {}
        self.size = 0
        """The estimated bytes of all entries."""
        self.hits = 0
        self.misses = 0
        self.joined = 0
        """Calls that shared another call's request."""

    @property
    def entries(self) -> int:
        """The number of stored completions."""
        return len(self._entries)

    def lookup(self, key: CacheKey, now: float) -> CachedCompletion | None:
        """Return the cached answer to a request, and mark it as the most recently used."""
        cached = self._entries.get(key)
        if cached is None:
            return None
        if now - cached.since >= self._ttl:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return cached

    def store(self, key: CacheKey, completion: Completion) -> None:
        """Store an answer if it is complete and not too large, encoded as a hit with a cost of 0."""
        if not completion.is_whole:
            return
        metadata = completion.metadata.unpaid(from_cache=True)
        completion = replace(completion, metadata=replace(metadata, cache_age_seconds=0.0))
        result = completion.to_result(NEWEST_HANDSHAKE).result
        # The size counts the request, the answer, and the encoded result, which contains the answer again.
        calls = completion.tool_calls or ()
        characters = len(completion.content) + sum(len(call.function.arguments) for call in calls)
        size = _ENTRY_OVERHEAD + len(key[1]) + len(result) + _BYTES_PER_CHARACTER * characters
        if size > self._max_bytes:
            return
        parts = result.split(_AGE + b"0.0")
        self._drop(key)
        self._entries[key] = CachedCompletion(completion, self._clock.monotonic(), parts, size)
        self.size += size
        while len(self._entries) > self._max_entries or self.size > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: CacheKey) -> None:
        cached = self._entries.pop(key, None)
        if cached is not None:
            self.size -= cached.size

    # --- requests under way --------------------------------------------------------------------------------

    async def share(
        self, key: CacheKey, send: Callable[[], Coroutine[Any, Any, Completion]]
    ) -> tuple[Completion, bool]:
        """Return the answer to a request, joining an equal one under way; return also whether it joined.

        The request is cancelled when the last call that waits for it is.
        """
        shared = self._shared.get(key)
        is_joined = shared is not None
        if shared is None:
            shared = self._shared[key] = SharedRequest(asyncio.create_task(send()))
            shared.task.add_done_callback(lambda _: self._shared.pop(key, None))
        else:
            self.joined += 1
        shared.waiting += 1
        try:
            # Cancelling one of the calls does not cancel the request of the others. Not `shield`: since
            # Python 3.14 it prints a failure that comes after the cancellation.
            await asyncio.wait([shared.task])
            return shared.task.result(), is_joined
        finally:
            shared.waiting -= 1
            if not shared.waiting and not shared.task.done():
                self._shared.pop(key, None)
                shared.task.cancel()
