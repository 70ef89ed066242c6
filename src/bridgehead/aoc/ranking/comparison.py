"""Comparison: how many times slower one model is than another, with a 95 % interval. Pure and deterministic.

Two models are compared puzzle by puzzle: the ratio of their medians on each puzzle that both ran, and the
geometric mean of these ratios. The interval comes from a bootstrap: puzzles and runs are resampled, and the
middle 95 % of the results are the interval.
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
MAX_TOTAL_DRAWS = 120_000
"""Over all models and puzzles of a board; takes a tenth of a second."""
TAIL = 0.025
"""Share of the draws below the interval, and above it."""
ZERO_MS = 0.5
"""The value of 0 ms in a ratio: half of the millisecond that times are rounded to."""
_FIT_ROUNDS = 30


class Ratio(Struct, frozen=True):
    """How many times slower a model is than the leader, and the interval of that."""

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
        """Return the logarithms of resampled medians of a puzzle.

        The median of n times resampled from n is one of them, at a rank around the middle that has a beta
        distribution. So one random rank replaces n random times.
        """
        if puzzle not in self._drawn:
            ordered = self.puzzles[puzzle].ordered
            n = len(ordered)
            if n == 1:
                self._drawn[puzzle] = [_log(ordered[0])] * self._draws
            else:
                # Seeded by model and puzzle: the same records always give the same board.
                gauss = Random(f"{self.llm} {puzzle}").gauss  # noqa: S311
                # The standard deviation of Beta((n + 1) / 2, (n + 1) / 2), of which this is the normal
                # approximation.
                spread = 0.5 / math.sqrt(n + 2)
                places = (int(n * gauss(0.5, spread)) for _ in range(self._draws))
                self._drawn[puzzle] = [_log(ordered[min(max(place, 0), n - 1)]) for place in places]
        return self._drawn[puzzle]


def _log(milliseconds: float) -> float:
    return math.log(milliseconds or ZERO_MS)


def draws_for(cells: int) -> int:
    """Return the draws per median for a board of `cells` medians."""
    return max(MIN_DRAWS, min(MAX_DRAWS, MAX_TOTAL_DRAWS // max(cells, 1)))


def compare(model: Model, leader: Model) -> Ratio | None:
    """Compare a model with the leader over the puzzles that both ran; None if they share none."""
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
    tail = int(len(means) * TAIL)
    low, high = math.exp(means[tail]), math.exp(means[-1 - tail])
    # Resampling can miss the value itself; the interval always includes it.
    return Ratio(value, min(low, value), max(high, value))


def _redrawn_means(ratios: list[list[float]]) -> list[float]:
    """Return the mean over the puzzles for each draw, with the puzzles resampled too."""
    count = len(ratios)
    if count == 1:
        return ratios[0]
    # A fixed seed: the same records always give the same board.
    choices = Random(count).choices  # noqa: S311
    return [
        sum(puzzle[draw] for puzzle in choices(ratios, k=count)) / count for draw in range(len(ratios[0]))
    ]


def find_leader(models: list[Model], candidates: list[Model]) -> Model:
    """Return the fastest of the candidates, corrected for the difficulty of the puzzles they ran.

    Each median is modelled as the model's speed times the puzzle's difficulty; both are fitted to the
    logarithms in turns. The time is linear in the number of medians; comparing all pairs would be quadratic.
    """
    speeds = {model.llm: 0.0 for model in models}
    solvers: dict[Puzzle, list[tuple[str, float]]] = {}
    for model in models:
        for puzzle, log in model.logs.items():
            solvers.setdefault(puzzle, []).append((model.llm, log))
    for _ in range(_FIT_ROUNDS):
        difficulty = {
            puzzle: sum(log - speeds[llm] for llm, log in logs) / len(logs)
            for puzzle, logs in solvers.items()
        }
        for model in models:
            speeds[model.llm] = sum(log - difficulty[p] for p, log in model.logs.items()) / len(model.logs)
    # Rounded: a difference in the last bits must not decide between two equally fast models.
    return min(candidates, key=lambda model: (round(speeds[model.llm], 9), -model.n, model.llm))
