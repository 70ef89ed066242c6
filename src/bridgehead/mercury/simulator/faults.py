"""Faults: injected failures, for the next requests, for all of them, or for a share of them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from email.utils import formatdate
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

Kind = Literal["", "cut", "drop", "short", "undone", "garbage", "endless", "silent", "error", "refused"]
"""
cut: the connection is closed in the middle of the answer
drop: the connection is closed before any of the answer
short: the answer ends in good order, but too early, without a finish reason and `[DONE]`
undone: the stream has its finish reason, but no `[DONE]`
garbage: not JSON, or not an event
endless: the answer never ends
silent: the answer begins, then nothing more comes, and the connection stays open
error: an error in the middle of a stream; without a stream, an error with status 200
refused: the connection is closed, and for a while nothing listens
"""


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """One failure, and the requests that it applies to."""

    status: int = 200
    code: str = ""
    message: str = ""
    retry_after: str = ""
    """Retry-After header, verbatim."""
    retry_after_ms: str = ""
    """retry-after-ms header, verbatim."""
    retry_after_date: float | None = None
    """Seconds from now, sent as a Retry-After header with a date."""
    delay: float = 0.0
    """Seconds before the first byte; when refused, how long nothing listens."""
    chunk_delay: float | None = None
    """Seconds between the pieces of a stream."""
    kind: Kind = ""
    after: int = 3
    """Pieces of a stream that are sent before the fault strikes."""
    on: str = "completions"
    """Text that a request's path must contain."""
    says: str = ""
    """Text that a request's body must contain."""

    def is_for(self, path: str, body: bytes) -> bool:
        """Tell whether the fault applies to a request."""
        return self.on in path and self.says.encode() in body

    def headers(self, now: float) -> list[tuple[bytes, bytes]]:
        """Return the retry headers."""
        pairs = []
        if self.retry_after:
            pairs.append((b"retry-after", self.retry_after.encode()))
        if self.retry_after_ms:
            pairs.append((b"retry-after-ms", self.retry_after_ms.encode()))
        if self.retry_after_date is not None:
            pairs.append((b"retry-after", formatdate(now + self.retry_after_date, usegmt=True).encode()))
        return pairs


NAMED: dict[str, Fault] = {
    **{str(status): Fault(status=status) for status in (400, 401, 402, 404, 408, 429, 500, 502, 503, 504)},
    "context": Fault(status=400, code="context_length_exceeded"),
    "429-seconds": Fault(status=429, retry_after="1"),
    "429-date": Fault(status=429, retry_after_date=1.0),
    "429-ms": Fault(status=429, retry_after_ms="50"),
    "503-ms": Fault(status=503, retry_after_ms="50"),
    "slow": Fault(delay=0.3),
    "slow-chunks": Fault(chunk_delay=0.02),
    "cut": Fault(kind="cut"),
    "cut-early": Fault(kind="cut", after=0),
    "drop": Fault(kind="drop"),
    "short": Fault(kind="short"),
    "undone": Fault(kind="undone"),
    "garbage": Fault(kind="garbage"),
    "endless": Fault(kind="endless"),
    "silent": Fault(kind="silent"),
    "error": Fault(kind="error"),
    "refused": Fault(kind="refused", delay=0.05),
}
"""Faults by the names that `simulate --fault` takes; `mixed` chooses among all of them."""


class FaultSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /_faults."""

    clear: bool = False
    next: tuple[Fault, ...] = ()
    always: Fault | UnsetType | None = UNSET
    rate: float | UnsetType = UNSET
    seed: int = 0
    among: tuple[str, ...] = ()
    """Names of faults; none means all."""


class Faults:
    """Chooses the fault of each request."""

    def __init__(self, rate: float = 0.0, seed: int = 0, among: Iterable[Fault] = ()) -> None:
        self._queue: deque[Fault] = deque()
        self._always: Fault | None = None
        self.mixed(rate, seed, among)

    def next(self, *faults: Fault) -> None:
        """Fail the next requests, one fault each."""
        self._queue.extend(faults)

    def always(self, fault: Fault | None) -> None:
        """Fail every request with this fault; None ends it."""
        self._always = fault

    def mixed(self, rate: float, seed: int = 0, among: Iterable[Fault] = ()) -> None:
        """Fail a random share of the requests, repeatable by the seed."""
        self._rate = rate
        self._chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._among = tuple(among) or tuple(NAMED.values())

    def clear(self) -> None:
        """Remove all faults."""
        self._queue.clear()
        self.always(None)
        self.mixed(0.0)

    def apply(self, settings: FaultSettings) -> None:
        """Apply faults set by another process."""
        if settings.clear:
            self.clear()
        self.next(*settings.next)
        if settings.always is not UNSET:
            self.always(settings.always)
        if settings.rate is not UNSET:
            self.mixed(settings.rate, settings.seed, [NAMED[name] for name in settings.among])

    def take(self, path: str, body: bytes = b"") -> Fault | None:
        """Return the fault of a request, and use it up if it was queued."""
        for fault in self._queue:
            if fault.is_for(path, body):
                self._queue.remove(fault)
                return fault
        if self._always is not None and self._always.is_for(path, body):
            return self._always
        if self._rate and self._chance.random() < self._rate:
            # Drawn before it is matched, so the sequence depends on the seed and the number of requests only.
            fault = self._chance.choice(self._among)
            return fault if fault.is_for(path, body) else None
        return None
