"""Backoff: how long to wait before the next try, longer each time, and not in step with others."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """Delays that grow from a base by a factor up to a most, each shaken by a share of itself."""

    base: float
    most: float
    factor: float = 2.0
    jitter: float = 0.2

    def delay(self, attempt: int, draw: Callable[[], float]) -> float:
        """Return the seconds to wait before a try, counted from 0; `draw` gives a number from 0 to 1."""
        try:
            plain = min(self.most, self.base * self.factor**attempt)
        except OverflowError:  # after very many tries, the most was reached long ago
            plain = self.most
        return plain * (1 + self.jitter * (2 * draw() - 1))
