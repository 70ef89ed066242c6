"""Ranking: how far the leaderboard can be believed. `python -m bench.aoc.ranking` writes RANKING.md.

Draws boards whose truth is known, ranks them as the bridge does, and counts. Log time is the model's speed,
the puzzle's difficulty, how the model suits the puzzle (tau) and the run (sigma), all normal.
"""

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from statistics import median

from bench.machine import machine
from bridgehead.aoc.files.attempts import Tries
from bridgehead.aoc.files.filters import Puzzle
from bridgehead.aoc.ranking.comparison import (
    Fit,
    Place,
    count_failures,
    fit_puzzles,
    fit_runs,
    place_models,
    sure_pairs,
)

HERE = Path(__file__).parent
SEED = 2025
OUTLIER_SHARE, OUTLIER_LOG = 0.1, 3.0
"""A run in ten takes up to twenty times as long."""


@dataclass(frozen=True)
class Setting:
    """One kind of board."""

    name: str
    models: int
    puzzles: int
    runs: tuple[int, int]
    """The least and the most runs of a model on a puzzle."""
    sigma: tuple[float, float] = (0.2, 0.8)
    tau: tuple[float, float] = (0.0, 0.6)
    share: float = 1.0
    """How many of the puzzles a model runs."""
    noisy: bool = False
    """The first model has five times the spread."""
    outliers: bool = False
    by_runs: bool = False
    """One or two puzzles, where the claim is about those alone."""


SETTINGS = (
    Setting("2, 3 × 5", 2, 3, (5, 5), (0.5, 0.5), (0.3, 0.3)),
    Setting("2, 10 × 3", 2, 10, (3, 3), (0.5, 0.5), (0.3, 0.3)),
    Setting("5, 3 × 20", 5, 3, (20, 20)),
    Setting("5, 5 × 3", 5, 5, (3, 3)),
    Setting("5, 20 × 1", 5, 20, (1, 1)),
    Setting("10, 5 × 3", 10, 5, (3, 3)),
    Setting("10, 25 × 1", 10, 25, (1, 1)),
    Setting("10, 10 × 20, tau 0.6", 10, 10, (20, 20), tau=(0.6, 0.6)),
    Setting("6, 12 × 2, one noisy", 6, 12, (2, 2), noisy=True),
    Setting("10, 25 × 1, outliers", 10, 25, (1, 1), outliers=True),
    Setting("10, 10 × 5, outliers", 10, 10, (5, 5), outliers=True),
    Setting("10, half of 24 × 1-5", 10, 24, (1, 5), share=0.5),
    Setting("30, 25 × 3", 30, 25, (3, 3)),
    Setting("5, one puzzle × 3", 5, 1, (3, 3), by_runs=True),
    Setting("5, one puzzle × 20", 5, 1, (20, 20), by_runs=True),
    Setting("5, two puzzles × 5", 5, 2, (5, 5), by_runs=True),
)


class Truth:
    """Models with known speeds, drawn for one board."""

    def __init__(self, setting: Setting, speeds: list[float], draw: random.Random) -> None:
        self.setting, self.draw = setting, draw
        self.speeds = {f"m{number:02}": speed for number, speed in enumerate(speeds)}
        self.given = dict(self.speeds)
        self.runs: dict[str, dict[Puzzle, list[float]]] = {}
        difficulty = {(number + 1, 1): draw.gauss(8, 1) for number in range(setting.puzzles)}
        suits: dict[str, list[float]] = {}
        for number, (llm, speed) in enumerate(self.speeds.items()):
            factor = 5 if setting.noisy and number == 0 else 1
            sigma, tau = (draw.uniform(*bounds) * factor for bounds in (setting.sigma, setting.tau))
            ran = list(difficulty)
            if setting.share < 1:
                ran = draw.sample(ran, round(setting.puzzles * setting.share))
            for puzzle in ran:
                suit = draw.gauss(0, tau)
                level = speed + difficulty[puzzle] + suit
                suits.setdefault(llm, []).append(suit)
                count = draw.randint(*setting.runs)
                self.runs.setdefault(llm, {})[puzzle] = [self._run(level, sigma) for _ in range(count)]
        if setting.by_runs:
            # What is true of these puzzles alone includes how each model suits them.
            self.speeds = {
                llm: speed + sum(suits[llm]) / len(suits[llm]) for llm, speed in self.speeds.items()
            }

    def _run(self, level: float, sigma: float) -> float:
        is_outlier = self.setting.outliers and self.draw.random() < OUTLIER_SHARE
        return level + self.draw.gauss(0, sigma) + (self.draw.uniform(0, OUTLIER_LOG) if is_outlier else 0)

    def fit(self) -> Fit:
        """Fit the board as the bridge does."""
        if self.setting.by_runs:
            return fit_runs(self.runs)
        solvers = Counter(puzzle for cells in self.runs.values() for puzzle in cells)
        fit = fit_puzzles(
            {
                llm: {puzzle: median(logs) for puzzle, logs in of_model.items() if solvers[puzzle] > 1}
                for llm, of_model in self.runs.items()
            }
        )
        assert fit is not None
        return fit


@dataclass
class Row:
    """What was counted over all boards of a setting."""

    setting: Setting
    cover: float
    false: float
    split: float
    twice: float
    four: float
    ranges: float
    wrong: float
    width: float


def measured(setting: Setting, boards: int) -> Row:
    """Draw boards of equal models and of models that differ by 2× and 4×, and count."""
    draw = random.Random(f"{SEED} {setting.name}")  # noqa: S311 - times to rank, not secrets
    count: Counter[str] = Counter()
    widths = []
    for _ in range(boards):
        # On one puzzle, models that are equal in general differ in truth: nothing would be false.
        equal = replace(setting, tau=(0.0, 0.0)) if setting.by_runs else setting
        count["false"] += bool(sure_pairs(Truth(equal, [0.0] * setting.models, draw).fit())[0])
        speeds = [math.log(2) * (number % 3) for number in range(setting.models)]
        truth = Truth(setting, speeds, draw)
        fit = truth.fit()
        places = place_models(fit)
        for place in places[1:]:
            true = math.exp(truth.speeds[place.llm] - truth.speeds[places[0].llm])
            count["shown"] += 1
            count["covered"] += place.low <= true <= place.high
            widths.append(place.high / place.low)
        sure = {(fit.llms[quick], fit.llms[slow]) for quick, slow in sure_pairs(fit)[0]}
        _count_pairs(truth, places, sure, count)
    return Row(
        setting,
        count["covered"] / count["shown"],
        count["false"] / boards,
        _share(count["split"], boards if count["equal"] and not setting.by_runs else 0),
        _share(count["told 1"], count["pairs 1"]),
        _share(count["told 2"], count["pairs 2"]),
        _share(count["apart 2"], count["pairs 2"]),
        count["wrong"] / boards,
        median(widths),
    )


def _count_pairs(truth: Truth, places: list[Place], sure: set[tuple[str, str]], count: Counter[str]) -> None:
    """Count for each pair of models whether it is told apart, and rightly."""
    is_split = is_wrong = False
    # A model of five times the noise is there to disturb the others; its own place is not asked for.
    counted = [place for place in places if not (truth.setting.noisy and place.llm == "m00")]
    for one, other in combinations(sorted(counted, key=lambda place: truth.speeds[place.llm]), 2):
        is_apart = one.rank_high < other.rank
        is_wrong |= (other.llm, one.llm) in sure and truth.speeds[one.llm] < truth.speeds[other.llm]
        steps = round((truth.given[other.llm] - truth.given[one.llm]) / math.log(2))
        if steps == 0:
            count["equal"] += 1
            is_split |= is_apart or other.rank_high < one.rank
        elif steps > 0:
            count[f"pairs {steps}"] += 1
            count[f"told {steps}"] += (one.llm, other.llm) in sure
            count[f"apart {steps}"] += is_apart
    count["split"] += is_split
    count["wrong"] += is_wrong


def failures(boards: int) -> Iterator[tuple[str, float, float]]:
    """Rank models that often fail beside one that never does: the ratio shown, and how often it is sure."""
    draw = random.Random(f"{SEED} failures")  # noqa: S311 - attempts to count, not secrets
    for what, speed, rate in (("flaky 0.5×, solves 0.4", 0.5, 0.4), ("sniper 0.3×, solves 0.1", 0.3, 0.1)):
        ratios, sure = [], 0
        for _ in range(boards):
            truth = Truth(FAILING, [0.0, math.log(speed)], draw)
            tries = {
                llm: {puzzle: Tries(_binomial(draw, rate if llm == "m01" else 1.0), 5) for puzzle in cells}
                for llm, cells in truth.runs.items()
            }
            fit = count_failures(truth.fit(), tries)
            ratios.append(math.exp(fit.speed[1] - fit.speed[0]))
            sure += bool(sure_pairs(fit)[0])
        yield what, median(ratios), sure / boards


FAILING = Setting("2, 20 × 5", 2, 20, (1, 1), (0.5, 0.5), (0.3, 0.3))


def _binomial(draw: random.Random, rate: float) -> int:
    return sum(draw.random() < rate for _ in range(5))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def main() -> int:
    """Simulate every setting; print the tables and write them down."""
    parser = argparse.ArgumentParser(prog="python -m bench.aoc.ranking", description=__doc__)
    parser.add_argument("--boards", type=int, default=250, help="boards of each setting (default: 250)")
    options = parser.parse_args()
    lines = list(_report(options.boards))
    if options.boards >= 250:
        (HERE / "RANKING.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def _report(boards: int) -> Iterator[str]:
    for line in _lines(boards):
        print(line, flush=True)
        yield line


def _lines(boards: int) -> Iterator[str]:
    yield "# The ranking, simulated\n"
    yield "| models, puzzles × runs | cover | false | split | 2× | 4× | 4× by ranks | wrong | high ÷ low |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for setting in SETTINGS:
        row = measured(setting, boards * 4 if setting.models == 2 else boards)
        shares = (row.cover, row.false, row.split, row.twice, row.four, row.ranges, row.wrong)
        cells = ("–" if math.isnan(share) else f"{share:.2f}" for share in shares)
        yield f"| {setting.name} | {' | '.join(cells)} | {row.width:.1f} |"
    yield f"""
- command: `python -m bench.aoc.ranking`, {datetime.now(UTC):%Y-%m-%d}
- {boards} boards a setting, four times as many of two models
- the standard error of a share of 0.05 is {math.sqrt(0.05 * 0.95 / boards):.3f}
- {machine()}
- cover: intervals of the ratio to the leader that hold the truth; 0.95 is promised
- false: boards of equal models on which any two are told apart; at most 0.05 is promised
- split: boards on which two equal models among others have ranks that do not overlap
- 2×, 4×: pairs that differ so much and are told apart; 4× by ranks: by rank ranges that do not overlap
- wrong: boards that call the slower of two models surely faster
- high ÷ low: the median width of an interval

| against a model that always solves | time ÷ solve rate shown | told apart |
| --- | ---: | ---: |"""
    for what, ratio, sure in failures(boards):
        yield f"| {what} | {ratio:.2f}× | {sure:.2f} |"
    yield "\n20 puzzles, 5 attempts each. By time alone they would lead with 0.5× and 0.3×."


if __name__ == "__main__":
    sys.exit(main())
