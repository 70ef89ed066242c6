"""Student's t: two-sided p-values and quantiles, from the regularised incomplete beta function. Pure."""

from __future__ import annotations

import math
from functools import lru_cache

_MAX_STEPS = 300
_TINY = 1e-300
_PRECISION = 1e-12


def two_sided_p(t: float, df: float) -> float:
    """Return the chance of |T| ≥ |t| under a t distribution."""
    return _incomplete_beta(df / 2, 0.5, df / (df + t * t))


@lru_cache(maxsize=1024)  # models with as many puzzles have the same degrees of freedom
def two_sided_quantile(p: float, df: float) -> float:
    """Return the t that |T| exceeds with chance `p`."""
    low, high = 0.0, 1.0
    while two_sided_p(high, df) > p:
        low, high = high, high * 2
    # Illinois method: a secant that halves the value at an end kept twice. On the logarithm, which is nearly
    # linear in the tail, it takes about 8 steps for 12 digits; bisection takes 40.
    below, above = (math.log(max(two_sided_p(t, df), _TINY) / p) for t in (low, high))
    kept = t = 0.0
    for _ in range(_MAX_STEPS):
        t = high - above * (high - low) / (above - below)
        value = math.log(max(two_sided_p(t, df), _TINY) / p)
        if abs(value) < _PRECISION or high - low < _PRECISION * high:
            break
        if value > 0:
            low, below = t, value
            above *= 0.5 if kept > 0 else 1
            kept = 1
        else:
            high, above = t, value
            below *= 0.5 if kept < 0 else 1
            kept = -1
    return t


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # The continued fraction converges fast on this side of the mean only.
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1.0 - front * _continued_fraction(b, a, 1 - x) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method."""
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            change = c * d
            value *= change
        if abs(change - 1) < _PRECISION:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
