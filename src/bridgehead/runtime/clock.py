"""Clock: where the time comes from, so that a test can say what time it is."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time in two ways."""

    def now(self) -> float:
        """Return the seconds since 1970, which people and files understand."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back, for measuring."""
        ...


class SystemClock:
    """The clock of this machine."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
