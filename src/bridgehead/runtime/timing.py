"""Timing: clocks, and the pauses between retries."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct


class Clock(Protocol):
    """Wall-clock and monotonic time."""

    def now(self) -> float:
        """Return seconds since 1970, for timestamps."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back, for measuring."""
        ...


class SystemClock:
    """The clock of this machine."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class Backoff(Struct, frozen=True):
    """Exponential backoff: base * factor**attempt seconds up to `limit`, varied by ± `jitter` (a share)."""

    base: float
    limit: float
    factor: float = 2.0
    jitter: float = 0.2

    def delay(self, attempt: int, draw: Callable[[], float]) -> float:
        """Return the seconds before an attempt (counted from 0); `draw` returns a number from 0 to 1."""
        try:
            plain = min(self.limit, self.base * self.factor**attempt)
        except OverflowError:  # after about a thousand attempts the power exceeds a float
            plain = self.limit
        # Jitter, so that processes that failed together do not all retry together.
        return plain * (1 + self.jitter * (2 * draw() - 1))
