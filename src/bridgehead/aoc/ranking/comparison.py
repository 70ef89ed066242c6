"""Comparison: which models of one group are significantly faster, by how much, and their ranks. Pure.

The model: log time = speed of the model + difficulty of the puzzle + noise of that model. A model's affinity
to a puzzle is part of its noise, so a claim is about puzzles like these. With one or two puzzles no such
claim can be made; there the runs are the unit, and a claim is about those puzzles only.

The procedure and its constants were found by simulation; `bench/aoc/ranking.py` repeats it. No random
numbers: the same records always give the same board.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, median
from typing import NamedTuple

from ..files.attempts import Tries
from ..files.filters import Puzzle
from .student_t import two_sided_p, two_sided_quantile

Logs = Mapping[str, Mapping[Puzzle, float]]
"""The logarithm of each model's time on each puzzle."""

LEVEL = 0.05
"""Family-wise error rate: the chance that any two equal models of a group are ranked apart."""
ENOUGH_TO_CUT = 12
"""Puzzles a model needs before its single extreme times are clamped."""
CUT_SPREADS = 3 * 1.4826
"""How far a time may be from its model's own level: three standard deviations, estimated by the MAD."""
PRIOR_DF = 4
"""Weight of the common variance against a model's own, in puzzles."""
OUTLIER_FACTOR = 16
"""A model this many times as noisy as the median one is left out of the shared noise."""
NOISE_ROUNDS = 12
LEAST_NOISE_SHARE, LEAST_VARIANCE = 0.1, 1e-4


class Place(NamedTuple):
    """One model of a group, with the range of ranks that the runs allow for."""

    llm: str
    rank: int
    rank_high: int
    ratio: float
    """Expected time for a solved answer, as a multiple of the leader's."""
    low: float
    high: float


class Fit(NamedTuple):
    """Speeds of the models of a group, with the data needed to compare any two."""

    llms: list[str]
    speed: list[float]
    """Logarithm of the time, up to a constant of the group."""
    covariance: list[list[float]]
    noise: list[float]
    """Variance of one cell of each model, or of one run."""
    cells: list[int]
    df: list[float]
    """Degrees of freedom of each noise."""
    max_df: float

    def error(self, i: int, j: int) -> float:
        """Return the standard error of the difference of two speeds."""
        g = self.covariance
        return math.sqrt(g[i][i] + g[j][j] - 2 * g[i][j])

    def freedom(self, i: int, j: int) -> float:
        """Return Welch's degrees of freedom of that difference."""
        a, b = self.noise[i], self.noise[j]
        return min((a + b) ** 2 / (a * a / self.df[i] + b * b / self.df[j]), self.max_df)


def place_models(fit: Fit) -> list[Place]:
    """Return each model's range of ranks from the comparison of all pairs, the leader first."""
    pairs, level = sure_pairs(fit)
    count = len(fit.llms)
    faster, slower = [0] * count, [0] * count
    for quick, slow in pairs:
        faster[slow] += 1
        slower[quick] += 1

    def order(i: int) -> tuple[int, int, float, str]:
        # Among models with the same range, uncertain ones (few or noisy runs) come later.
        margin = two_sided_quantile(level, fit.df[i]) * math.sqrt(fit.noise[i] / fit.cells[i])
        return faster[i], -slower[i], round(fit.speed[i] + margin, 9), fit.llms[i]

    ordered = sorted(range(count), key=order)
    leader = ordered[0]
    places = []
    for i in ordered:
        difference, margin = fit.speed[i] - fit.speed[leader], 0.0
        if i != leader:
            margin = two_sided_quantile(level, fit.freedom(i, leader)) * fit.error(i, leader)
        interval = _exp(difference - margin), _exp(difference + margin)
        places.append(Place(fit.llms[i], 1 + faster[i], count - slower[i], _exp(difference), *interval))
    return places


def sure_pairs(fit: Fit) -> tuple[list[tuple[int, int]], float]:
    """Return the pairs whose first model is significantly faster, and the level for matching intervals."""
    tested = []
    for i, j in combinations(range(len(fit.llms)), 2):
        p = two_sided_p((fit.speed[i] - fit.speed[j]) / fit.error(i, j), fit.freedom(i, j))
        tested.append((p, (i, j) if fit.speed[i] < fit.speed[j] else (j, i)))
    tested.sort()
    # Holm: the smallest p is compared with 0.05 / all pairs, the next with one pair less, up to the first
    # that is too large. Then the chance that any of the claims is wrong is at most 0.05.
    count = len(tested)
    rejected = next((n for n, (p, _) in enumerate(tested) if p > LEVEL / (count - n)), count)
    return [pair for _, pair in tested[:rejected]], LEVEL / max(1, count - rejected)


def count_failures(fit: Fit, tries: Mapping[str, Mapping[Puzzle, Tries]]) -> Fit:
    """Return the fit of time ÷ solve rate: the expected time of trying until solved."""
    costs = failure_costs(fit.llms, tries)
    covariance = [list(row) for row in fit.covariance]
    for i, (_, spread) in enumerate(costs):
        covariance[i][i] += spread
    speed = [speed + cost for speed, (cost, _) in zip(fit.speed, costs, strict=True)]
    return fit._replace(speed=speed, covariance=covariance)


def failure_costs(
    llms: Sequence[str], tries: Mapping[str, Mapping[Puzzle, Tries]]
) -> list[tuple[float, float]]:
    """Return each model's ln(expected ÷ actual solves), and the variance of that.

    The expected number takes the group's solve rate for each attempt at a puzzle. Every model needs attempts.
    """
    totals: dict[Puzzle, Tries] = {}
    for llm in llms:
        for puzzle, (solved, attempts) in tries[llm].items():
            before = totals.get(puzzle, Tries(0, 0))
            totals[puzzle] = Tries(before.solved + solved, before.attempts + attempts)
    rates = {puzzle: (solved + 0.5) / (attempts + 1) for puzzle, (solved, attempts) in totals.items()}
    costs = []
    for llm in llms:
        own = tries[llm]
        expected = {puzzle: attempts * rates[puzzle] for puzzle, (_, attempts) in own.items()}
        solved, attempts = (
            sum(tries.solved for tries in own.values()),
            sum(tries.attempts for tries in own.values()),
        )
        smoothed, total, k = solved + 0.5, sum(expected.values()), len(own)
        # The larger of two variances: of independent attempts, or of whole puzzles that a model solves always
        # or never.
        spread = (1 - smoothed / (attempts + 1)) / smoothed
        if k > 1:
            share = solved / total
            squares = sum((own[puzzle].solved - share * expected[puzzle]) ** 2 for puzzle in own)
            spread = max(spread, k / (k - 1) * squares / smoothed**2)
        costs.append((math.log((total + 0.5) / smoothed), spread))
    return costs


def _variance(values: Sequence[float]) -> float:
    # `statistics.variance` computes in fractions: a tenth of a second for a board of 30 models.
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _exp(value: float) -> float:
    # An interval from two or three noisy puzzles can be wider than a float.
    return math.exp(max(-700.0, min(700.0, value)))


# --- three puzzles and more: the puzzles are the unit -----------------------------------------------------


def fit_puzzles(logs: Logs) -> Fit | None:
    """Fit the models of a connected group; None if no two of them share two puzzles.

    `logs` has a cell for each model and puzzle that it solved: the median of ln(time).
    """
    cut, factors = cut_extremes(logs)
    estimated = estimate_noise(cut)
    if estimated is None:
        return None
    shared_noise, df = estimated
    noise = [value * factor for value, factor in zip(shared_noise, factors, strict=True)]
    weights = {llm: dict.fromkeys(cut[llm], 1 / value) for llm, value in zip(cut, noise, strict=True)}
    speed, covariance = least_squares(cut, weights)
    cells = [len(model_cells) for model_cells in cut.values()]
    puzzles = {puzzle for model_cells in cut.values() for puzzle in model_cells}
    max_df = sum(cells) - len(cut) - len(puzzles) + 1
    return Fit(list(cut), speed, covariance, noise, cells, df, max_df)


def cut_extremes(logs: Logs) -> tuple[dict[str, dict[Puzzle, float]], list[float]]:
    """Clamp single extreme times of models with many puzzles; return also each model's noise factor."""
    columns: dict[Puzzle, list[float]] = {}
    for model_cells in logs.values():
        for puzzle, value in model_cells.items():
            columns.setdefault(puzzle, []).append(value)
    usual = {puzzle: median(values) for puzzle, values in columns.items()}
    level = {
        llm: median(value - usual[puzzle] for puzzle, value in cells.items()) for llm, cells in logs.items()
    }
    distances = {
        llm: [abs(value - usual[puzzle] - level[llm]) for puzzle, value in cells.items()]
        for llm, cells in logs.items()
    }
    group_mad = median(distance for model_cells in distances.values() for distance in model_cells)
    kept: dict[str, dict[Puzzle, float]] = {}
    factors = []
    for llm, cells in logs.items():
        count = len(cells)
        limit = math.inf
        if count >= ENOUGH_TO_CUT:
            limit = CUT_SPREADS * max(median(distances[llm]), group_mad)
        middles = {puzzle: usual[puzzle] + level[llm] for puzzle in cells}
        kept[llm] = {
            puzzle: min(max(value, middles[puzzle] - limit), middles[puzzle] + limit)
            for puzzle, value in cells.items()
        }
        clamped = sum(distance > limit for distance in distances[llm])
        factors.append((count / (count - clamped)) ** 2)
    return kept, factors


def estimate_noise(logs: Logs) -> tuple[list[float], list[float]] | None:
    """Return each model's variance per cell and its degrees of freedom; None without any two shared puzzles.

    The variance of the difference of two models is the sum of their variances; this solves the system of
    these sums.
    """
    llms = list(logs)
    sums: list[list[tuple[int, float, int]]] = [[] for _ in llms]
    """For each model: the other model, the variance of their differences, and its degrees of freedom."""
    for i, j in combinations(range(len(llms)), 2):
        first, second = logs[llms[i]], logs[llms[j]]
        differences = [value - second[puzzle] for puzzle, value in first.items() if puzzle in second]
        if len(differences) > 1:
            spread = _variance(differences)
            sums[i].append((j, spread, len(differences) - 1))
            sums[j].append((i, spread, len(differences) - 1))
    total = sum(df for model_sums in sums for _, _, df in model_sums)
    if not total:
        return None
    mean = sum(spread * df for model_sums in sums for _, spread, df in model_sums) / total / 2
    noise = [mean] * len(llms)
    if len(llms) > 2:  # noqa: PLR2004 - of two models only the sum is known, and each has half of it
        for _ in range(NOISE_ROUNDS):
            for i, model_sums in enumerate(sums):
                if model_sums:
                    part = sum((spread - noise[j]) * df for j, spread, df in model_sums)
                    noise[i] = max(part / sum(df for _, _, df in model_sums), LEAST_NOISE_SHARE * mean)
    return share_noise(noise, [len(cells) - 1 for cells in logs.values()])


def share_noise(noise: Sequence[float], df: Sequence[float]) -> tuple[list[float], list[float]]:
    """Raise each model's variance towards the common one; return the variances and degrees of freedom."""
    limit = OUTLIER_FACTOR * median(noise)
    # At most a quarter of the models can be outliers.
    outliers = sorted((i for i, value in enumerate(noise) if value > limit), key=lambda i: -noise[i])
    left_out = set(outliers[: len(noise) // 4])
    common = fmean(value for i, value in enumerate(noise) if i not in left_out)
    shared, degrees = [], []
    for i, (value, d) in enumerate(zip(noise, df, strict=True)):
        if i in left_out:
            shared.append(max(value, LEAST_VARIANCE))
            degrees.append(float(d))
        else:
            weighted = (PRIOR_DF * common + d * value) / (PRIOR_DF + d)
            shared.append(max(value, weighted, LEAST_VARIANCE))
            degrees.append(float(d + PRIOR_DF))
    return shared, degrees


def least_squares(
    logs: Logs, weights: Mapping[str, Mapping[Puzzle, float]]
) -> tuple[list[float], list[list[float]]]:
    """Fit speeds and difficulties to the cells; return the speeds, the last one 0, and their covariance."""
    llms = list(logs)
    place = {llm: i for i, llm in enumerate(llms)}
    size = len(llms) - 1
    normal = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    columns: dict[Puzzle, list[tuple[int, float, float]]] = {}
    for llm, cells in logs.items():
        for puzzle, value in cells.items():
            columns.setdefault(puzzle, []).append((place[llm], value, weights[llm][puzzle]))
    # The puzzles' difficulties are eliminated: what remains has a row and a column for each model but one.
    for column in columns.values():
        total = sum(weight for _, _, weight in column)
        mean = sum(weight * value for _, value, weight in column) / total
        for i, value, weight in column:
            if i == size:
                continue
            right[i] += weight * (value - mean)
            normal[i][i] += weight
            row = normal[i]
            share = weight / total
            for j, _, other in column:
                if j != size:
                    row[j] -= share * other
    inverse = invert(normal)
    speed = [sum(g * r for g, r in zip(row, right, strict=True)) for row in inverse]
    return [*speed, 0.0], [*([*row, 0.0] for row in inverse), [0.0] * (size + 1)]


def invert(matrix: list[list[float]]) -> list[list[float]]:
    """Invert a symmetric positive definite matrix by Gauss–Jordan elimination."""
    # Without pivoting: the pivots of a positive definite matrix are positive. In place, without an augmented
    # matrix: each finished column becomes one of the inverse.
    rows = [list(row) for row in matrix]
    for i in range(len(rows)):
        pivot = rows[i][i]
        top = rows[i] = [value / pivot for value in rows[i]]
        top[i] = 1 / pivot
        for j, row in enumerate(rows):
            factor = row[i]
            if j != i and factor:
                row[i] = 0.0
                rows[j] = [value - factor * other for value, other in zip(row, top, strict=True)]
    return rows


# --- one or two puzzles: the runs are the unit -------------------------------------------------------------


def fit_runs(runs: Mapping[str, Mapping[Puzzle, Sequence[float]]]) -> Fit:
    """Fit models that all ran the same one or two puzzles; `runs` has ln(time) of every solved run.

    A model's speed is its mean over the puzzles, its noise the variance of its runs on a puzzle.
    """
    llms = list(runs)
    speed, own, degrees, counts = [], [], [], []
    shares = []
    for model_runs in runs.values():
        k, n = len(model_runs), sum(map(len, model_runs.values()))
        speed.append(fmean(map(fmean, model_runs.values())))
        squares = sum(_variance(logs) * (len(logs) - 1) for logs in model_runs.values())
        own.append(squares / (n - k))
        degrees.append(n - k)
        # The variance of the mean over puzzles of the means over runs, in units of one run's.
        shares.append(sum(1 / len(logs) for logs in model_runs.values()) / k**2)
        counts.append(n)
    noise, df = share_noise(own, degrees)
    covariance = [
        [noise[i] * shares[i] if i == j else 0.0 for j in range(len(llms))] for i in range(len(llms))
    ]
    return Fit(llms, speed, covariance, noise, counts, df, math.inf)
