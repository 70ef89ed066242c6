"""Accounts: what each caller has open and how much memory it holds, across one process.

Memory held for a caller is charged here and released: sessions, streams, requests in progress, time of
work, and bytes (bodies that arrive, answers that are not read yet, events kept for resuming, batches,
arguments and results of tasks, subscriptions). A caller is a token or, if none is needed, an address
(`Request.caller`).

There are two rules. A caller over its share is refused with 429. When the process reaches its memory limit,
the largest holders lose the events kept for resuming; if that is not enough, larger requests get 503 while
small ones are still served.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from time import monotonic
from typing import Protocol

from ..errors import OVERLOADED
from ..limits import Ledger, Limits
from .memory import resident_bytes
from .rejection import Rejection, reject_session

_LOOK_BYTES = 8 * 1024 * 1024
"""Charged bytes after which the memory of the process is read again (about 20 µs)."""
_LARGE_BYTES = 256 * 1024
"""For more than this at once, the memory of the process is always read."""
_MAX_CALLERS = 1000
"""Callers whose time is counted separately; any others share one entry."""
OTHERS = "(others)"
_RETRY_SECONDS = 5
_MINUTE, _PART_SECONDS = 60.0, 10.0


class Share:
    """How much of one resource each caller has: sessions, streams, requests or bytes."""

    def __init__(self, name: str, limit: int, retry_seconds: float) -> None:
        self._name = name
        self.limit = limit
        self._retry_seconds = retry_seconds
        # A plain dict: it is read for every request, and a Counter handles missing keys in Python code.
        self.by_caller: dict[str, int] = {}
        """The amount that each caller has; a caller with none is absent."""
        self.total = 0
        """The sum over all callers."""

    def check(self, caller: str) -> None:
        """Reject a caller that has reached the limit."""
        if self.by_caller.get(caller, 0) >= self.limit:
            message = f"You have {self.limit} {self._name} open, which is the limit. End one, then try again."
            raise self.reject(message)

    def has_part(self, caller: str, limit: int) -> bool:
        """Whether a caller has an equal part of what there is for all: then a full server refuses it."""
        return self.by_caller.get(caller, 0) * (len(self.by_caller) + 1) >= limit

    def reject(self, message: str) -> Rejection:
        """Make the rejection of a caller that has reached the limit."""
        headers = ((b"retry-after", b"%d" % ceil(self._retry_seconds)),)
        return Rejection(429, message, code=OVERLOADED, headers=headers)

    def take(self, caller: str, amount: int = 1) -> None:
        """Add to the count of a caller."""
        self.by_caller[caller] = self.by_caller.get(caller, 0) + amount
        self.total += amount

    def give_back(self, caller: str, amount: int = 1) -> None:
        """Subtract from the count of a caller; one at 0 is removed, so that the dict stays small."""
        self.total -= amount
        left = self.by_caller[caller] - amount
        if left:
            self.by_caller[caller] = left
        else:
            del self.by_caller[caller]


class WorkTime:
    """Seconds that the work of each caller took: CPU time in threads, and long steps on the event loop.

    A caller whose work took more than `limit` of the last 60 seconds is refused until it is below that again,
    but only if another caller also worked in that minute. A caller that is alone is never refused.
    """

    def __init__(self, limit: float, clock: Callable[[], float] = monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self.by_caller: dict[str, float] = {}
        """Seconds since the start of the process; the name is empty for work of the process itself."""
        self.over: set[str] = set()
        """Callers that were over the limit when last checked; others need no check."""
        self._lock = threading.Lock()
        """Protects the attributes of this class: `add` is called by threads too."""
        self._minute: deque[tuple[float, dict[str, float]]] = deque()
        """The last minute in parts of `_PART_SECONDS`, each with its beginning."""

    def add(self, caller: str, seconds: float) -> None:
        """Count time that a caller's work took."""
        with self._lock:
            known, now = self.by_caller, self._clock()
            name = caller if caller in known or len(known) < _MAX_CALLERS else OTHERS
            known[name] = known.get(name, 0.0) + seconds
            part = self._part(now)
            part[name] = part.get(name, 0.0) + seconds
            if name and sum(part.get(name, 0.0) for _, part in self._minute) > self._limit:
                self.over.add(name)

    def check(self, caller: str) -> None:
        """Reject a caller over its limit while others work too; any caller that asks is one of these."""
        with self._lock:
            now = self._clock()
            self._part(now).setdefault(caller, 0.0)
            used = sum(part.get(caller, 0.0) for _, part in self._minute)
            if used <= self._limit:
                self.over.discard(caller)
                return
            if all(name in ("", caller) for _, part in self._minute for name in part):
                return
            left, retry = used, 0.0
            for began, part in self._minute:  # find when enough old parts leave the window
                if left <= self._limit:
                    break
                left -= part.get(caller, 0.0)
                retry = began + _MINUTE - now
        headers = ((b"retry-after", b"%d" % max(1, ceil(retry))),)
        message = (
            f"Your calls took {used:.0f} s of CPU time in the last minute; while others need it too, "
            f"{self._limit:g} s are the limit. Try again in {max(1, ceil(retry))} s."
        )
        raise Rejection(429, message, code=OVERLOADED, headers=headers)

    def _part(self, now: float) -> dict[str, float]:
        """Return the current part of the minute; forget those that are older than that."""
        while self._minute and self._minute[0][0] <= now - _MINUTE:
            self._minute.popleft()
        if not self._minute or self._minute[-1][0] <= now - _PART_SECONDS:
            self._minute.append((now, {}))
        return self._minute[-1][1]


class OpenSession(Protocol):
    """The part of a `Session` that is used here: `sessions` imports this module."""

    caller: str
    in_use: int
    idle_since: float

    def close(self) -> None:
        """End the session and everything done for it."""


class KeptEvents(Protocol):
    """The part of an `EventStream` that is used here: `events` imports this module."""

    def drop(self) -> None:
        """Drop the events kept for resuming."""


class Accounts(Ledger):
    """The open resources and the held memory of all callers."""

    def __init__(self, limits: Limits, read_memory: Callable[[], int] = resident_bytes) -> None:
        self.sessions = Share("sessions", limits.sessions_per_caller, 30)
        self.streams = Share("streams", limits.streams_per_caller, 5)
        self.requests = Share("requests", limits.http_requests_per_caller, 1)
        self.bytes = Share("bytes", limits.bytes_per_caller, _RETRY_SECONDS)
        self.work = WorkTime(limits.thread_seconds_per_caller)
        self.is_full = False
        """Whether the memory of the process has reached its limit."""
        self._limits = limits
        self._read_memory = read_memory
        self._sessions: dict[str, dict[OpenSession, None]] = {}
        self._events: dict[str, dict[KeptEvents, None]] = {}
        """By caller, the streams that keep events, the oldest first."""
        self._charged = 0
        """Bytes charged since memory was last read."""

    def spend(self, caller: str, seconds: float) -> None:
        """Charge time that a step of a caller's work took on the event loop."""
        self.work.add(caller, seconds)

    # --- bytes ---------------------------------------------------------------------------------------------

    def charge(self, caller: str, size: int) -> None:
        """Count bytes held for a caller; above its share, its oldest events are dropped."""
        if not size:
            return
        self.bytes.take(caller, size)
        while self.bytes.by_caller[caller] > self.bytes.limit and self._drop_events(caller):
            pass
        self._charged += size
        if self._charged > _LOOK_BYTES:
            self.check_memory()

    def release(self, caller: str, size: int) -> None:
        """Stop counting bytes that were held for a caller."""
        if size:
            self.bytes.give_back(caller, size)

    def hold(self, caller: str, size: int) -> bool:
        """Charge the bytes that outlive a request; False, and nothing charged, above the caller's share."""
        self.charge(caller, size)  # first, because dropping the caller's events may bring it below its share
        try:
            self.check(caller)
        except Rejection:
            self.release(caller, size)
            return False
        return True

    def check(self, caller: str, size: int = 0) -> None:
        """Reject a caller over its share, or one that needs `size` more bytes while memory is full."""
        held = self.bytes.by_caller.get(caller, 0)
        if held + size > self.bytes.limit:
            raise self.bytes.reject(
                f"The server holds {held} bytes for you, and {self.bytes.limit} are the limit. "
                "Read your answers and finish your requests, then try again."
            )
        # Even with full memory, a caller that holds no more than an equal part may send small requests.
        if (
            (self.is_full and (size or held * len(self.bytes.by_caller) > self.bytes.total))
            or size > _LARGE_BYTES
        ) and self.check_memory(size):
            message = "The server has no memory left for this. Try again in a moment."
            headers = ((b"retry-after", b"%d" % _RETRY_SECONDS),)
            raise Rejection(503, message, code=OVERLOADED, headers=headers)

    @contextmanager
    def holding(self, caller: str, size: int) -> Iterator[None]:
        """Charge bytes for the duration of the block."""
        self.charge(caller, size)
        try:
            yield
        finally:
            self.release(caller, size)

    def is_over(self, caller: str) -> bool:
        """Whether a caller holds more than its share."""
        return self.bytes.by_caller.get(caller, 0) > self.bytes.limit

    def check_memory(self, more: int = 0) -> bool:
        """Read the memory of the process; drop kept events if it is full, return whether it still is.

        What is about to take `more` bytes is refused before it can pass the limit.
        """
        self._charged = 0
        limit = self._limits.memory_bytes
        used = (self._read_memory() or self.bytes.total) + more
        # The allocator may keep freed memory for a while, so subtract what was dropped.
        while used > limit and self._events:
            before = self.bytes.total
            self._drop_events(max(self._events, key=lambda caller: self.bytes.by_caller.get(caller, 0)))
            used -= before - self.bytes.total
        self.is_full = used - more > limit
        return used > limit

    # --- events kept for resuming --------------------------------------------------------------------------

    def keep_events(self, caller: str, stream: KeptEvents) -> None:
        """Register a stream that keeps events; they may be dropped if memory is short."""
        self._events.setdefault(caller, {})[stream] = None

    def forget_events(self, caller: str, stream: KeptEvents) -> None:
        """Unregister a stream that keeps no more events."""
        kept = self._events.get(caller)
        if kept is not None:
            kept.pop(stream, None)
            if not kept:
                del self._events[caller]

    def _drop_events(self, caller: str) -> bool:
        """Drop the events of a caller's oldest stream; False if it has none."""
        kept = self._events.get(caller)
        if not kept:
            return False
        next(iter(kept)).drop()
        return True

    # --- sessions ------------------------------------------------------------------------------------------

    def open_session(self, session: OpenSession) -> None:
        """Count a session; at the limit of the process, close the idlest session of the largest holder."""
        caller = session.caller
        self.sessions.check(caller)
        if self.sessions.total >= self._limits.sessions:
            counts = self.sessions.by_caller
            idlest = min(
                (candidate for of_caller in self._sessions.values() for candidate in of_caller),
                key=lambda candidate: (-counts[candidate.caller], candidate.in_use > 0, candidate.idle_since),
            )
            # A caller with no more sessions than this one keeps its busy ones: otherwise equals would close
            # each other's in turn.
            if idlest.in_use and counts[idlest.caller] <= counts.get(caller, 0) + 1:
                raise reject_session()
            idlest.close()
        self.sessions.take(caller)
        self._sessions.setdefault(caller, {})[session] = None

    def close_session(self, session: OpenSession) -> None:
        """Stop counting a session; a second call does nothing."""
        of_caller = self._sessions.get(session.caller, {})
        if session in of_caller:
            del of_caller[session]
            if not of_caller:
                del self._sessions[session.caller]
            self.sessions.give_back(session.caller)
