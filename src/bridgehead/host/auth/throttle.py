"""Throttle: token buckets by name, in memory: N per minute, with bursts of up to N.

Called on every limited request, from one event loop, so it needs no lock. The number of names is bounded; the
name that was idle longest is dropped first, because its bucket is the most likely to be full anyway.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

_MINUTE = 60.0
_MAX_NAMES = 10_000


class Throttle:
    """Buckets by name."""

    def __init__(self, monotonic: Callable[[], float], max_names: int = _MAX_NAMES) -> None:
        self._now = monotonic
        self._max_names = max_names
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tokens left and when that was measured, by name; the last used is last."""

    def take(self, name: str, per_minute: int) -> float:
        """Take one and return 0; or, if none is left, return the seconds until there is one."""
        # Refilled when it is used, by the time since the last use: no timer, and an idle name costs nothing.
        now = self._now()
        left, since = self._buckets.pop(name, (float(per_minute), now))
        left = min(float(per_minute), left + (now - since) * per_minute / _MINUTE)
        wait = 0.0 if left >= 1 else (1 - left) * _MINUTE / per_minute
        self._buckets[name] = (left if wait else left - 1, now)
        if len(self._buckets) > self._max_names:
            self._buckets.popitem(last=False)
        return wait
