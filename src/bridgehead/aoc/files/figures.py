"""Figures: median, mean, deviation and percentile of runs. Pure; integer arithmetic where possible.

`Runs` keeps the times of one puzzle sorted, with their sums, so that one more is cheap. `figures` computes
over several `Runs` as if they were one list, without merging them.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import repeat
from operator import mul

from msgspec import Struct

ENOUGH_FOR_P95 = 20
"""With fewer runs the 95th percentile would be the slowest run or the one before it."""
_EXACT_SQUARES = 2**48
"""Below this, the square of `math.hypot` rounds to the exact sum: its error is below one part in 2**52."""


class Figures(Struct, frozen=True):
    """Times are in milliseconds."""

    n: int
    best: int
    median: float
    mean: float
    stdev: float | None
    """Sample deviation; None for a single run."""
    p95: int | None


class Runs:
    """Sorted times and their sums."""

    __slots__ = ("claimed", "ordered", "squares", "total")

    def __init__(self, ordered: list[int], claimed: int = 0) -> None:
        """Take ownership of a sorted list of times."""
        self.ordered = ordered
        self.claimed = claimed
        """How many of the times were reported, not measured."""
        self.total = sum(ordered)
        self.squares = squares(ordered)

    def add(self, time: int, *, is_claimed: bool = False) -> None:
        """Add one run."""
        insort(self.ordered, time)
        self.total += time
        self.squares += time * time
        self.claimed += is_claimed

    def merged(self, other: Runs) -> Runs:
        """Return a new `Runs` with both; neither is changed."""
        return Runs(sorted(self.ordered + other.ordered), self.claimed + other.claimed)


def squares(ordered: list[int]) -> int:
    """Return the exact sum of the squares of sorted times."""
    # `hypot` is correct to the last bit, so up to a bound its square rounds to the exact sum, in a fraction
    # of the time of Python integers.
    if ordered and len(ordered) * ordered[-1] ** 2 < _EXACT_SQUARES:
        return round(math.hypot(*ordered) ** 2)
    return sum(map(mul, ordered, ordered))


def figures(parts: Sequence[Runs]) -> Figures:
    """Compute the figures over all parts, which hold at least one run together."""
    stdev: float | None = None
    if len(parts) == 1:
        # Every `record_speed` takes this path: 1.5 µs, where the general one below takes 3.3 µs.
        times, total = parts[0].ordered, parts[0].total
        n = len(times)
        stdev = math.sqrt((n * parts[0].squares - total**2) / (n * (n - 1))) if n > 1 else None
        median: float = times[n // 2]
        if not n % 2:
            both = times[n // 2 - 1] + times[n // 2]
            median = both // 2 if both % 2 == 0 else both / 2
        p95 = times[-(-n * 95 // 100) - 1] if n >= ENOUGH_FOR_P95 else None
        return Figures(n, times[0], median, total / n, stdev, p95)
    n = sum(len(part.ordered) for part in parts)
    total = sum(part.total for part in parts)
    # Integers up to the last step: the subtraction would cancel the digits of floats.
    if n > 1:
        squares = sum(part.squares for part in parts)
        stdev = math.sqrt((n * squares - total**2) / (n * (n - 1)))
    ordered = [part.ordered for part in parts if part.ordered]
    # Nearest rank: the ceiling of 0.95 n, counted from 0.
    p95 = at_rank(ordered, -(-n * 95 // 100) - 1) if n >= ENOUGH_FOR_P95 else None
    best = min(times[0] for times in ordered)
    return Figures(n, best, _median(ordered, n), total / n, stdev, p95)


def median_of(ordered: list[int]) -> float:
    """Return the median of sorted times."""
    return _median([ordered], len(ordered))


def _median(ordered: list[list[int]], n: int) -> float:
    if n % 2:
        return at_rank(ordered, n // 2)
    lower = at_rank(ordered, n // 2 - 1)
    # The upper of the two middle times is either equal to the lower one or the smallest time above it.
    ends = list(map(bisect_right, ordered, repeat(lower)))
    upper = lower
    if sum(ends) <= n // 2:
        upper = min(times[end] for times, end in zip(ordered, ends, strict=True) if end < len(times))
    both = lower + upper
    return both // 2 if both % 2 == 0 else both / 2


def at_rank(ordered: Sequence[Sequence[int]], rank: int) -> int:
    """Return the time at a rank, counted from 0, of the merged lists; each list is sorted.

    Binary search over values: each step counts, in every list, the times up to the middle of the range.
    """
    if len(ordered) == 1:
        return ordered[0][rank]
    n = sum(map(len, ordered))
    # Start between the lowest and the highest of the times at the same relative rank in each list: the time
    # sought cannot lie outside of these.
    low = min(times[rank * len(times) // n] for times in ordered)
    high = max(times[min(-(-rank * len(times) // n), len(times) - 1)] for times in ordered)
    while low < high:
        middle = (low + high) // 2
        if sum(map(bisect_right, ordered, repeat(middle))) > rank:
            high = middle
        else:
            low = middle + 1
    return low
