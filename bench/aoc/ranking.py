"""Ranking: how far the leaderboard can be believed. `python -m bench.aoc.ranking` writes RANKING.md.

Draws boards whose truth is known, ranks them as the bridge does, and counts on how many of them everything
that is claimed holds. Log time is the model's level, the day's difficulty, how the model suits the day, and
the attempt, all normal; an attempt that takes longer than the limit fails.
"""

import argparse
import math
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bench.machine import machine
from bridgehead.aoc.files.filters import Puzzle
from bridgehead.aoc.ranking.comparison import Place, Tries, Unit, place_models, why_unranked

HERE = Path(__file__).parent
SEED = 2026
MINUTE = 60_000.0
SPREAD = 0.5
"""Of a single attempt, as a standard deviation of ln(time)."""
ENOUGH = 250
"""Boards of a setting from which on the table is written down."""


class Model(NamedTuple):
    """One kind of agent."""

    minutes: float = 10.0
    """Median time of a solved attempt."""
    solves: float = 1.0
    failing_minutes: float = 10.0
    """How long a failed attempt takes."""
    limit: float | None = None
    """A solved attempt that takes longer fails at the limit, in minutes."""


@dataclass(frozen=True)
class Setting:
    """One kind of board."""

    name: str
    models: tuple[Model, ...]
    days: int
    repeats: int = 1
    day_effect: float = 0.3
    """How differently a model does from day to day."""


def _levels(*minutes: float, **more: float) -> tuple[Model, ...]:
    return tuple(Model(level, **more) for level in minutes)


SETTINGS = (
    Setting("2 equal, 5×2×1", (Model(),) * 2, 5),
    Setting("5 equal, 5×2×1", (Model(),) * 5, 5),
    Setting("10 equal, 12×2×1", (Model(),) * 10, 12),
    Setting("10 equal, 25×2×3, day effect 0.7", (Model(),) * 10, 25, 3, 0.7),
    Setting("5 equal, solve rate 0.3, 8×2×1", (Model(solves=0.3),) * 5, 8),
    Setting("gambler 2 or 30 min, steady 10, 12×2×1", (Model(2, 0.5, 30), Model(10)), 12),
    Setting("limit 30 min, medians 10 and 30, 12×2×1", _levels(10, 30, limit=30), 12),
    Setting("equal cost: 80 % quick, else 3.6×, 5×2×1", (Model(10), Model(5.263, 0.8, 18.95)), 5),
    Setting("equal cost: 90 % quick, else 8×, 12×2×1", (Model(10), Model(5.294, 0.9, 42.35)), 12),
    Setting("2 agents, 2×, 12×2×1", _levels(10, 20), 12),
    Setting("5 agents 1 to 4×, 12×2×1", _levels(10, 14.1, 20, 28.3, 40), 12),
    Setting(
        "5 agents, solve 1 to 0.4, 12×2×3", tuple(Model(solves=s) for s in (1, 0.85, 0.7, 0.55, 0.4)), 12, 3
    ),
    Setting("10 agents 1 to 8×, 25×2×1", _levels(*(10 * 2 ** (n / 3) for n in range(10))), 25),
    Setting("2 equal, one day, 5 repeats", (Model(),) * 2, 1, 5, 0.0),
    Setting("2 agents, 3×, one day, 10 repeats", _levels(10, 30), 1, 10, 0.0),
)


def draw_board(setting: Setting, draw: random.Random) -> dict[str, dict[Puzzle, Tries]]:
    """Draw every attempt of a board; phase 2 is tried only after phase 1 was solved."""
    board: dict[str, dict[Puzzle, Tries]] = {f"m{place}": {} for place in range(len(setting.models))}
    for day in range(1, setting.days + 1):
        difficulty = draw.gauss(0, 0.8)
        for puzzles, model in zip(board.values(), setting.models, strict=True):
            suits = draw.gauss(0, setting.day_effect)
            for _ in range(setting.repeats):
                for phase in (1, 2):
                    time, is_solved = _attempt(model, difficulty + suits + draw.gauss(0, SPREAD), draw)
                    cell = puzzles.setdefault((day, phase), Tries([], []))
                    (cell.solved if is_solved else cell.failed).append(time)  # type: ignore[attr-defined]
                    if not is_solved:
                        break
    return board


def _attempt(model: Model, noise: float, draw: random.Random) -> tuple[float, bool]:
    is_solved = draw.random() < model.solves
    time = (model.minutes if is_solved else model.failing_minutes) * math.exp(noise) * MINUTE
    if model.limit is not None and time > model.limit * MINUTE:
        return model.limit * MINUTE, False
    return time, is_solved


@cache
def true_cost(model: Model, day_effect: float) -> float:
    """Return the time a solved answer costs in the long run, from very many attempts."""
    draw = random.Random(SEED)  # noqa: S311 - times to rank, not secrets
    spent = solved = tried = 0.0
    for _ in range(60_000):
        day = draw.gauss(0, math.hypot(0.8, day_effect))
        for _ in range(2):
            time, is_solved = _attempt(model, day + draw.gauss(0, SPREAD), draw)
            spent, solved, tried = spent + time, solved + is_solved, tried + 1
            if not is_solved:
                break
    return spent / solved


class Counted(NamedTuple):
    """What holds on a share of the boards, and the share of different pairs told apart."""

    holds: float
    apart: float | None


def count(setting: Setting, boards: int) -> Counted:
    """Draw boards of a setting and compare what is claimed with the truth."""
    draw = random.Random(f"{SEED} {setting.name}")  # noqa: S311 - times to rank, not secrets
    truth = {f"m{n}": true_cost(model, setting.day_effect) for n, model in enumerate(setting.models)}
    holds = told = pairs = 0
    for _ in range(boards):
        board = draw_board(setting, draw)
        unit: Unit = "days" if setting.days > 2 else "attempts"
        unranked = why_unranked(board, unit)
        places = place_models({llm: tries for llm, tries in board.items() if llm not in unranked}, unit)
        holds += _all_hold(places, truth)
        for one in places:
            for other in places:
                if truth[one.llm] < truth[other.llm] * 0.99:
                    pairs += 1
                    told += one.rank_high < other.rank
    return Counted(holds / boards, told / pairs if pairs else None)


def _all_hold(places: list[Place], truth: dict[str, float]) -> bool:
    """Whether each true rank is in its range, and each true ratio in its interval."""
    costs = {place.llm: truth[place.llm] for place in places}
    for place in places:
        own = costs[place.llm]
        better = sum(cost < own * 0.99 for cost in costs.values())
        equal = sum(abs(cost / own - 1) <= 0.01 for cost in costs.values()) - 1
        if place.rank > better + equal + 1 or place.rank_high < better + 1:
            return False
        ratio = own / costs[places[0].llm]
        low, high = place.low or 0.0, place.high or math.inf
        if place is not places[0] and not low / 1.01 <= ratio <= high * 1.01:
            return False
    return True


def main() -> int:
    """Simulate every setting; print the table and write it down."""
    parser = argparse.ArgumentParser(prog="python -m bench.aoc.ranking", description=__doc__)
    parser.add_argument("--boards", type=int, default=ENOUGH, help=f"of each setting (default: {ENOUGH})")
    options = parser.parse_args()
    lines = []
    for line in _lines(options.boards):
        print(line, flush=True)
        lines.append(line)
    if options.boards >= ENOUGH:
        (HERE / "RANKING.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def _lines(boards: int) -> Iterator[str]:
    yield "# The ranking, simulated\n"
    yield "| board (days × phases × repeats) | everything holds | pairs told apart |"
    yield "| --- | ---: | ---: |"
    with ProcessPoolExecutor() as pool:
        counted = pool.map(count, SETTINGS, [boards] * len(SETTINGS))
        for setting, (holds, apart) in zip(SETTINGS, counted, strict=True):
            yield f"| {setting.name} | {holds:.3f} | {'–' if apart is None else f'{apart:.2f}'} |"
    yield f"""
- command: `python -m bench.aoc.ranking`, {datetime.now(UTC):%Y-%m-%d}
- {boards} boards a setting; the standard error of a share of 0.95 is {math.sqrt(0.05 * 0.95 / boards):.3f}
- {machine()}
- everything holds: the true rank of every model is in its range, and its true ratio in its interval
- pairs told apart: of models whose true costs differ, by ranges that do not overlap
- phase 2 is tried only after phase 1 was solved; days differ in difficulty, and each model suits them
  differently (0.3 unless noted, as a standard deviation of ln(time)); a single attempt spreads by {SPREAD}"""


if __name__ == "__main__":
    sys.exit(main())
