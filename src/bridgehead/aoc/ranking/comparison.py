"""Comparison: what a solved answer costs each model, which models are surely cheaper, and their ranks. Pure.

Cost = all the time a model took, failed attempts included, divided by the puzzles it solved. Two models are
compared over the puzzles that both tried. Days are the unit: leaving out each day in turn shows how much the
ratio depends on single days. On one or two days that says nothing; there the attempts are the unit, and a
claim is about these puzzles only. Holm's procedure over all pairs keeps the chance of any wrong claim on the
whole board at 5 %.

Simulation chose this rule; `bench/aoc/ranking.py` repeats it. There is no randomness: the same records always
give the same board.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Literal, NamedTuple

from ..files.filters import Puzzle
from .student_t import two_sided_p, two_sided_quantile

LEVEL = 0.05
"""The chance that any claim of a whole board is wrong."""
LEAST_DAYS, LEAST_SOLVED = 3, 3
LEAST_ATTEMPTS = 5
"""At each puzzle, where attempts are the unit."""
PRIOR_DF = 2
"""Weight of the board's common variance against that of one pair, in days."""
FEW = 0.5
"""Half a solved answer is added to both counts, so that a model that solved nothing has a finite cost."""
ZERO_MS = 0.5
"""The value of 0 ms: half of the millisecond that times are rounded to."""
LEAST_VARIANCE = 1e-6

Unit = Literal["days", "attempts"]


class Tries(NamedTuple):
    """A model's checked attempts at one puzzle: how long those that solved it took, and those that failed."""

    solved: Sequence[float]
    failed: Sequence[float]

    @property
    def time(self) -> float:
        """The mean time of an attempt, in milliseconds."""
        times = [*self.solved, *self.failed]
        return (sum(times) + ZERO_MS * times.count(0)) / len(times)

    @property
    def rate(self) -> float:
        """The share of solved attempts."""
        return len(self.solved) / (len(self.solved) + len(self.failed))


Models = Mapping[str, Mapping[Puzzle, Tries]]


class Place(NamedTuple):
    """One ranked model, with the range of ranks that its attempts allow for."""

    llm: str
    rank: int
    rank_high: int
    ratio: float | None
    """Cost of a solved answer, as a multiple of the first one's; None if the two share too little."""
    low: float | None
    high: float | None


class _Fit(NamedTuple):
    """The cost of a model over some puzzles, and what each unit contributes to its uncertainty."""

    cost: float
    """Logarithm of the cost."""
    changes: list[float]
    """How the cost changes without each unit, scaled: the sum of their squares is the variance."""
    shares: list[float]
    """The part of each unit in the model's time."""
    puzzles: int


class _Pair(NamedTuple):
    difference: float
    variance: float
    df: float

    @property
    def error(self) -> float:
        return math.sqrt(max(self.variance, LEAST_VARIANCE))


def place_models(models: Models, unit: Unit) -> list[Place]:
    """Return the ranks of models that `why_unranked` finds nothing against, the cheapest first."""
    names = sorted(models)
    fits: dict[tuple[str, frozenset[Puzzle]], _Fit] = {}

    def fit(name: str, puzzles: frozenset[Puzzle]) -> _Fit:
        if (name, puzzles) not in fits:
            fits[name, puzzles] = (_fit_days if unit == "days" else _fit_attempts)(models[name], puzzles)
        return fits[name, puzzles]

    own = {name: frozenset(models[name]) for name in names}
    pairs = {}
    for a, b in combinations(names, 2):
        shared = own[a] if own[a] == own[b] else own[a] & own[b]  # the same set hashes once
        if _is_enough(shared, unit):
            pairs[a, b] = _compare(fit(a, shared), fit(b, shared), unit)
    pairs = _widen(pairs, _unseen_failures(models), has_prior=len(names) > 2)  # noqa: PLR2004 - a pair alone
    claims, level = _sure_claims(pairs)
    cheaper, dearer = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for cheap, dear in claims:
        cheaper[dear] += 1
        dearer[cheap] += 1
    names.sort(key=lambda name: (cheaper[name], -dearer[name], fit(name, own[name]).cost, name))
    return [
        Place(name, 1 + cheaper[name], len(names) - dearer[name], *_ratio(pairs, names[0], name, level))
        for name in names
    ]


def log_cost(time: float, solved: float, puzzles: float) -> float:
    """Return ln(time a puzzle ÷ share of puzzles solved)."""
    return math.log(time / puzzles) - math.log((solved + FEW) / (puzzles + FEW))


def cost_of(tries: Mapping[Puzzle, Tries]) -> float:
    """Return the milliseconds that a solved answer costs a model over its own puzzles."""
    time, solved = sum(cell.time for cell in tries.values()), sum(cell.rate for cell in tries.values())
    return math.exp(log_cost(time, solved, len(tries)))


def why_unranked(models: Models, unit: Unit) -> dict[str, str]:
    """Return the reason for each model that cannot be ranked."""
    reasons: dict[str, str] = {}
    for name, tries in models.items():
        solved = sum(len(cell.solved) for cell in tries.values())
        if not tries:
            reasons[name] = f"fewer than {LEAST_ATTEMPTS} attempts at a puzzle"
        elif solved < LEAST_SOLVED:
            reasons[name] = f"fewer than {LEAST_SOLVED} solved answers"
        elif not _is_enough(tries, unit):
            reasons[name] = f"fewer than {LEAST_DAYS} days"
    left = {name: frozenset(models[name]) for name in models.keys() - reasons.keys()}
    for name, own in left.items():
        if not any(_is_enough(own & puzzles, unit) for other, puzzles in left.items() if other != name):
            reasons[name] = f"fewer than {LEAST_DAYS} shared days" if unit == "days" else "no shared puzzle"
    return reasons


def _is_enough(puzzles: Mapping[Puzzle, Tries] | frozenset[Puzzle], unit: Unit) -> bool:
    return len({day for day, _ in puzzles}) >= LEAST_DAYS if unit == "days" else bool(puzzles)


def _fit_days(tries: Mapping[Puzzle, Tries], puzzles: frozenset[Puzzle]) -> _Fit:
    days: dict[int, tuple[float, float, int]] = {}
    for day, phase in sorted(puzzles):
        cell = tries[day, phase]  # a puzzle counts once, however often it was tried
        time, solved, count = days.get(day, (0.0, 0.0, 0))
        days[day] = time + cell.time, solved + cell.rate, count + 1
    time, solved, count = (sum(column) for column in zip(*days.values(), strict=True))
    without = [log_cost(time - t, solved - s, count - n) for t, s, n in days.values()]
    shares = [t / time for t, _, _ in days.values()]
    return _Fit(log_cost(time, solved, count), _jackknife(without), shares, len(puzzles))


def _fit_attempts(tries: Mapping[Puzzle, Tries], puzzles: frozenset[Puzzle]) -> _Fit:
    cells = [tries[puzzle] for puzzle in sorted(puzzles)]
    total = sum(len(cell.solved) + len(cell.failed) for cell in cells)

    def cost(attempts: int, time: float, rate: float) -> float:
        # Each puzzle has the same weight, and together they count as many attempts as were made.
        return log_cost(time * attempts / len(cells), rate * attempts / len(cells), attempts)

    time, rate = sum(cell.time for cell in cells), sum(cell.rate for cell in cells)
    changes: list[float] = []
    shares: list[float] = []
    for cell in cells:
        attempts = [(t or ZERO_MS, 1) for t in cell.solved] + [(t or ZERO_MS, 0) for t in cell.failed]
        n, solved = len(attempts), len(cell.solved)
        sum_of_times = cell.time * n
        changes += _jackknife(
            [
                cost(
                    total - 1,
                    time - cell.time + (sum_of_times - t) / (n - 1),
                    rate - cell.rate + (solved - is_solved) / (n - 1),
                )
                for t, is_solved in attempts
            ]
        )
        shares += [t / n / time for t, _ in attempts]
    return _Fit(cost(total, time, rate), changes, shares, len(cells))


def _jackknife(without: list[float]) -> list[float]:
    mean, scale = fmean(without), math.sqrt((len(without) - 1) / len(without))
    return [(value - mean) * scale for value in without]


def _compare(a: _Fit, b: _Fit, unit: Unit) -> _Pair:
    """Return the difference of two costs, its variance and degrees of freedom.

    A unit's weight is its share of the time: one long day or attempt is little evidence, however many short
    ones there are beside it.
    """
    if unit == "days":
        weights = [(x + y) / 2 for x, y in zip(a.shares, b.shares, strict=True)]
        df = max(1.0, 1 / math.hypot(*weights) ** 2 - 1)
        return _Pair(b.cost - a.cost, math.dist(a.changes, b.changes) ** 2, df)
    # Attempts of two models have nothing in common, so their variances add up, with Welch's degrees of
    # freedom. Each puzzle's mean takes one.
    variances = [max(math.hypot(*fit.changes) ** 2, LEAST_VARIANCE) for fit in (a, b)]
    dfs = [max(1.0, 1 / math.hypot(*fit.shares) ** 2 - fit.puzzles) for fit in (a, b)]
    welch = sum(variances) ** 2 / sum(v * v / df for v, df in zip(variances, dfs, strict=True))
    return _Pair(b.cost - a.cost, sum(variances), welch)


def _unseen_failures(models: Models) -> dict[str, float]:
    """Return the variance of failures that did not happen yet: half an attempt as long as the longest one."""
    longest = max((t for tries in models.values() for cell in tries.values() for t in cell.failed), default=0)
    totals = {
        name: sum(cell.time * (len(cell.solved) + len(cell.failed)) for cell in tries.values())
        for name, tries in models.items()
    }
    return {name: math.log1p(0.5 * longest / total) ** 2 for name, total in totals.items()}


def _widen(
    pairs: Mapping[tuple[str, str], _Pair], unseen: Mapping[str, float], *, has_prior: bool
) -> dict[tuple[str, str], _Pair]:
    """Raise small variances towards the board's mean, and add that of failures not seen yet."""
    common = fmean(pair.variance for pair in pairs.values()) if pairs else 0.0
    widened = {}
    for (a, b), (difference, own, own_df) in pairs.items():
        variance, df = own, own_df
        if has_prior:  # few days say little about their own spread
            variance, df = (
                max(own, (own_df * own + PRIOR_DF * common) / (own_df + PRIOR_DF)),
                own_df + PRIOR_DF,
            )
        widened[a, b] = _Pair(difference, variance + unseen[a] + unseen[b], df)
    return widened


def _sure_claims(pairs: Mapping[tuple[str, str], _Pair]) -> tuple[list[tuple[str, str]], float]:
    """Return the pairs whose first model is surely cheaper, and the level for matching intervals."""
    tested = sorted(
        (two_sided_p(pair.difference / pair.error, pair.df), *((a, b) if pair.difference > 0 else (b, a)))
        for (a, b), pair in pairs.items()
    )
    # Holm: the smallest p is compared with 0.05 / all pairs, the next with one pair less, up to the first
    # that is too large. Then the chance that any of the claims is wrong is at most 0.05.
    count = len(tested)
    sure = next((k for k, (p, _, _) in enumerate(tested) if p > LEVEL / (count - k)), count)
    return [(cheap, dear) for _, cheap, dear in tested[:sure]], LEVEL / max(1, count - sure)


def _ratio(
    pairs: Mapping[tuple[str, str], _Pair], first: str, name: str, level: float
) -> tuple[float, float, float] | tuple[None, None, None]:
    if name == first:
        return 1.0, 1.0, 1.0
    pair, sign = pairs.get((first, name)), 1
    if pair is None:
        pair, sign = pairs.get((name, first)), -1
    if pair is None:
        return None, None, None
    difference, margin = sign * pair.difference, pair.error * two_sided_quantile(level, pair.df)
    return _exp(difference), _exp(difference - margin), _exp(difference + margin)


def _exp(value: float) -> float:
    # An interval from a few uneven days can be wider than a float.
    return math.exp(max(-700.0, min(700.0, value)))
