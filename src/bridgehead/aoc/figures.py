"""Figures: what the times of several runs come to. Pure arithmetic, exact where whole numbers allow it.

`Runs` takes times in one by one and has its figures at hand at once, for a writer that answers each record;
`figures` looks at many times at once, for a ranking.
"""

from __future__ import annotations

import math
from bisect import insort

from msgspec import Struct

ENOUGH_FOR_P95 = 20
"""With fewer runs the 95th percentile is just the slowest or the one before."""


class Figures(Struct, frozen=True):
    """What runs come to, in milliseconds."""

    n: int
    best: int
    median: float
    mean: float
    stdev: float | None
    """Of the sample; None for a single run, which has no spread."""
    p95: int | None = None


def figures(times: list[int]) -> Figures:
    """Work out the figures of at least one run; the list is sorted on the way."""
    times.sort()
    n = len(times)
    mean = sum(times) / n
    stdev = math.dist(times, [mean] * n) / math.sqrt(n - 1) if n > 1 else None
    p95 = times[-(-n * 95 // 100) - 1] if n >= ENOUGH_FOR_P95 else None
    return Figures(n, times[0], _median(times), mean, stdev, p95)


def _median(ordered: list[int]) -> float:
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    both = ordered[middle - 1] + ordered[middle]
    return both // 2 if both % 2 == 0 else both / 2


class Runs:
    """Times that keep coming in."""

    def __init__(self, times: list[int]) -> None:
        self._ordered = sorted(times)
        self.total = sum(times)
        self._squares = sum(time * time for time in times)

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, time: int) -> None:
        """Take one more in."""
        insort(self._ordered, time)
        self.total += time
        self._squares += time * time

    @property
    def figures(self) -> Figures:
        """What all of them come to so far, without a look at each."""
        n = len(self._ordered)
        stdev = None
        if n > 1:  # whole numbers up to the last step, so that nothing cancels out
            stdev = math.sqrt((n * self._squares - self.total**2) / (n * (n - 1)))
        return Figures(n, self._ordered[0], _median(self._ordered), self.total / n, stdev)
