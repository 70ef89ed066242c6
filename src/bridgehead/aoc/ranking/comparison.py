"""Comparison: how many times slower one model is than another, and how sure that is. Pure and deterministic.

Two models are compared puzzle by puzzle: the ratio of their medians on each puzzle that both ran, and the
geometric mean of these ratios. A bootstrap says how far that could be off by chance: puzzles and runs are
drawn again, and the middle 95 % of the results are the interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from random import Random

from msgspec import Struct

from .figures import Runs, median_of

Puzzle = tuple[int, int]
"""A day and a phase."""

MIN_DRAWS, MAX_DRAWS = 100, 400
DRAWS_IN_ALL = 120_000
"""Of all models and puzzles together; a tenth of a second."""
OUTSIDE = 0.025
"""Of the draws on each side of the interval."""
ZERO_MS = 0.5
"""What 0 ms counts as in a ratio: less than the millisecond that times are rounded to."""
_ROUNDS = 30


class Ratio(Struct, frozen=True):
    """How many times slower a model is than the leader, and between what."""

    value: float
    low: float
    high: float


class Model:
    """One model's runs by puzzle, with the logarithms of their medians."""

    def __init__(self, llm: str, puzzles: Mapping[Puzzle, Runs], draws: int) -> None:
        self.llm = llm
        self.puzzles = puzzles
        self.n = sum(len(runs.ordered) for runs in puzzles.values())
        self._draws = draws
        self._drawn: dict[Puzzle, list[float]] = {}

    @cached_property
    def logs(self) -> dict[Puzzle, float]:
        """The logarithm of the median on each puzzle."""
        return {puzzle: _log(median_of(runs.ordered)) for puzzle, runs in self.puzzles.items()}

    def drawn(self, puzzle: Puzzle) -> list[float]:
        """Return logarithms of medians as they could have come out, had the model run the puzzle again.

        The median of n times drawn again from n is one of them, at a place around the middle whose spread is
        that of a beta distribution. So it takes one draw of a place instead of n draws of times.
        """
        if puzzle not in self._drawn:
            ordered = self.puzzles[puzzle].ordered
            n = len(ordered)
            if n == 1:
                self._drawn[puzzle] = [_log(ordered[0])] * self._draws
            else:
                gauss = Random(f"{self.llm} {puzzle}").gauss  # noqa: S311 - the same board for the same records
                spread = 0.5 / math.sqrt(n + 2)
                places = (int(n * gauss(0.5, spread)) for _ in range(self._draws))
                self._drawn[puzzle] = [_log(ordered[min(max(place, 0), n - 1)]) for place in places]
        return self._drawn[puzzle]


def _log(milliseconds: float) -> float:
    return math.log(milliseconds or ZERO_MS)


def draws_for(cells: int) -> int:
    """Return how many draws a board of so many medians gets."""
    return max(MIN_DRAWS, min(MAX_DRAWS, DRAWS_IN_ALL // max(cells, 1)))


def compare(model: Model, leader: Model) -> Ratio | None:
    """Compare a model with the leader over the puzzles that both ran; None where there are none."""
    shared = sorted(model.puzzles.keys() & leader.puzzles.keys())
    if not shared:
        return None
    value = math.exp(sum(model.logs[puzzle] - leader.logs[puzzle] for puzzle in shared) / len(shared))
    if model is leader:
        return Ratio(1.0, 1.0, 1.0)
    ratios = [
        [mine - theirs for mine, theirs in zip(model.drawn(puzzle), leader.drawn(puzzle), strict=True)]
        for puzzle in shared
    ]
    means = sorted(_redrawn_means(ratios))
    outside = int(len(means) * OUTSIDE)
    low, high = math.exp(means[outside]), math.exp(means[-1 - outside])
    return Ratio(value, min(low, value), max(high, value))


def _redrawn_means(ratios: list[list[float]]) -> list[float]:
    """Return the mean over the puzzles for each draw, with the puzzles drawn again too."""
    count = len(ratios)
    if count == 1:
        return ratios[0]
    choices = Random(count).choices  # noqa: S311 - the same board for the same records
    return [
        sum(puzzle[draw] for puzzle in choices(ratios, k=count)) / count for draw in range(len(ratios[0]))
    ]


def find_leader(models: list[Model], candidates: list[Model]) -> Model:
    """Return the fastest of the candidates when how hard each puzzle is has been taken out.

    Each median is taken as the product of the model's speed and the puzzle's difficulty, fitted in turns to
    the logarithms. Time grows with the number of medians only, where comparing all pairs would grow with its
    square.
    """
    speeds = {model.llm: 0.0 for model in models}
    solvers: dict[Puzzle, list[tuple[str, float]]] = {}
    for model in models:
        for puzzle, log in model.logs.items():
            solvers.setdefault(puzzle, []).append((model.llm, log))
    for _ in range(_ROUNDS):
        hard = {puzzle: sum(log - speeds[llm] for llm, log in of) / len(of) for puzzle, of in solvers.items()}
        for model in models:
            speeds[model.llm] = sum(log - hard[p] for p, log in model.logs.items()) / len(model.logs)
    return min(candidates, key=lambda model: (round(speeds[model.llm], 9), -model.n, model.llm))
