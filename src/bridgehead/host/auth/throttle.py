"""Throttle: how often something may happen, by name, refilled as time goes by.

A bucket for each name, emptied by one each time and filled evenly; as many as a minute allows may come at
once. Small and without locks, because it is asked on every request. Bounded: of very many names, those that
have been quiet longest are forgotten, which are the full ones.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

_MINUTE = 60.0
_MOST_NAMES = 10_000


class Throttle:
    """Buckets by name."""

    def __init__(self, monotonic: Callable[[], float], most_names: int = _MOST_NAMES) -> None:
        self._now = monotonic
        self._most_names = most_names
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left in each bucket, and when that was so; the one that was used last is last."""

    def take(self, name: str, per_minute: int) -> float:
        """Take one, and return 0; or, where none is left, the seconds until there is one again."""
        now = self._now()
        left, since = self._buckets.pop(name, (float(per_minute), now))
        left = min(float(per_minute), left + (now - since) * per_minute / _MINUTE)
        wait = 0.0 if left >= 1 else (1 - left) * _MINUTE / per_minute
        self._buckets[name] = (left if wait else left - 1, now)
        if len(self._buckets) > self._most_names:
            self._buckets.popitem(last=False)
        return wait
