"""Figures: what the times of several runs come to. Pure arithmetic, exact where whole numbers allow it.

`Runs` are the times of one puzzle, in order and summed up, ready for one more; `figures` looks at several of
them as if they were one, without putting them together. So a ranking costs little for what it knows already.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import repeat
from operator import mul

from msgspec import Struct

ENOUGH_FOR_P95 = 20
"""With fewer runs the 95th percentile is just the slowest or the one before."""
_EXACT_SQUARES = 2**48
"""Sums of squares below this come out of `math.hypot`, which errs by less than one part in 2**52, exactly."""


class Figures(Struct, frozen=True):
    """What runs come to, in milliseconds."""

    n: int
    best: int
    median: float
    mean: float
    stdev: float | None
    """Of the sample; None for a single run, which has no spread."""
    p95: int | None


class Runs:
    """Times in order, and their sums."""

    __slots__ = ("claimed", "ordered", "squares", "total")

    def __init__(self, ordered: list[int], claimed: int = 0) -> None:
        """Take over a list of times that are in order."""
        self.ordered = ordered
        self.claimed = claimed
        """How many of them were told and not measured."""
        self.total = sum(ordered)
        self.squares = squares(ordered)

    def add(self, time: int, *, is_claimed: bool = False) -> None:
        """Take one more in."""
        insort(self.ordered, time)
        self.total += time
        self.squares += time * time
        self.claimed += is_claimed

    def merged(self, other: Runs) -> Runs:
        """Return these runs and others as one."""
        return Runs(sorted(self.ordered + other.ordered), self.claimed + other.claimed)


def squares(ordered: list[int]) -> int:
    """Sum up the squares of times that are in order.

    The length of a vector is right to its last bit, so that up to a bound its square, rounded, is the exact
    sum, for a fraction of the time.
    """
    if ordered and len(ordered) * ordered[-1] ** 2 < _EXACT_SQUARES:
        return round(math.hypot(*ordered) ** 2)
    return sum(map(mul, ordered, ordered))


def figures(parts: Sequence[Runs]) -> Figures:
    """Work out the figures of at least one run, which may be anywhere in the parts."""
    if len(parts) == 1:
        return figures_of(parts[0])
    n = sum(len(part.ordered) for part in parts)
    total = sum(part.total for part in parts)
    stdev = None
    if n > 1:  # whole numbers up to the last step, so that nothing cancels out
        squares = sum(part.squares for part in parts)
        stdev = math.sqrt((n * squares - total**2) / (n * (n - 1)))
    ordered = [part.ordered for part in parts if part.ordered]
    p95 = at_rank(ordered, -(-n * 95 // 100) - 1) if n >= ENOUGH_FOR_P95 else None
    best = min(times[0] for times in ordered)
    return Figures(n, best, _median(ordered, n), total / n, stdev, p95)


def figures_of(runs: Runs) -> Figures:
    """Work out the figures of one part: on the way of every record. Measured 1.5 µs against 3.3 µs."""
    ordered, total = runs.ordered, runs.total
    n = len(ordered)
    stdev = math.sqrt((n * runs.squares - total**2) / (n * (n - 1))) if n > 1 else None
    median: float = ordered[n // 2]
    if not n % 2:
        both = ordered[n // 2 - 1] + ordered[n // 2]
        median = both // 2 if both % 2 == 0 else both / 2
    p95 = ordered[-(-n * 95 // 100) - 1] if n >= ENOUGH_FOR_P95 else None
    return Figures(n, ordered[0], median, total / n, stdev, p95)


def median_of(ordered: list[int]) -> float:
    """Return the median of times that are in order."""
    return _median([ordered], len(ordered))


def _median(ordered: list[list[int]], n: int) -> float:
    if n % 2:
        return at_rank(ordered, n // 2)
    lower = at_rank(ordered, n // 2 - 1)
    both = lower + _next(ordered, lower, n // 2)
    return both // 2 if both % 2 == 0 else both / 2


def _next(ordered: list[list[int]], time: int, rank: int) -> int:
    """Give the time at a rank, of which the one before is known."""
    ends = list(map(bisect_right, ordered, repeat(time)))
    if sum(ends) > rank:
        return time
    return min(times[end] for times, end in zip(ordered, ends, strict=True) if end < len(times))


def at_rank(ordered: list[list[int]], rank: int) -> int:
    """Give the time that would be at a rank, counted from 0, if several ordered lists were one.

    Halves the range of values until one is left; each step asks every list how many of its times are within.
    It begins between the lowest and the highest of the times that are as far in their own lists: the one that
    is as far in all of them cannot be outside of these.
    """
    if len(ordered) == 1:
        return ordered[0][rank]
    n = sum(map(len, ordered))
    low = min(times[rank * len(times) // n] for times in ordered)
    high = max(times[min(-(-rank * len(times) // n), len(times) - 1)] for times in ordered)
    while low < high:
        middle = (low + high) // 2
        if sum(map(bisect_right, ordered, repeat(middle))) > rank:
            high = middle
        else:
            low = middle + 1
    return low
