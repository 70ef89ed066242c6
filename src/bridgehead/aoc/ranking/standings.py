"""Standings: rank models by how many times slower they are than the leader on shared puzzles. Pure.

A board has runs of one measure only. A model with few runs, or few puzzles in common with the leader, is
provisional and comes after those that are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import median as middle
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..files.entries import EXECUTION, SOLVING, Group, Measure
from .board import AttemptCounts, Board, Filters, Order, Row
from .comparison import ZERO_MS, Model, Puzzle, Ratio, compare, draws_for, find_leader
from .figures import Runs, figures, median_of

ENOUGH_RUNS = 5
MAX_CHANGES = 5
"""How often the leader may change: three models that beat each other in a circle would never settle."""

RunsByDay = Mapping[int, Mapping[Group, Runs]]
"""The runs of each day, by recorded name."""
Tally = dict[Puzzle, Runs]
"""The runs of one model, under all of its names, by puzzle."""


def rank(
    records: RunsByDay,
    filters: Filters,
    name_of: Callable[[str], str],
    attempts: Mapping[Measure, Mapping[str, AttemptCounts]],
) -> Board:
    """Rank the models of all records that pass the filters; `name_of` resolves aliases.

    `filters.llm` is ignored: a rank is among all models, whichever of them the caller shows.
    """
    tallies = {measure: tally(records, filters, name_of, measure) for measure in (SOLVING, EXECUTION)}
    measure = filters.measure
    if measure is None:
        # Solving time is what the contract means; execution time only if there is nothing else.
        has_solving = tallies[SOLVING] or attempts.get(SOLVING)
        has_execution = tallies[EXECUTION] or attempts.get(EXECUTION)
        measure = EXECUTION if has_execution and not has_solving else SOLVING
    chosen = tallies[measure]
    other = tallies[EXECUTION if measure == SOLVING else SOLVING]
    counts = attempts.get(measure, {})
    rows = [*_rank_runs(chosen, counts), *_unsolved(counts.keys() - chosen.keys(), counts)]
    if filters.order == "solve_rate":
        rows.sort(
            key=lambda row: (row.solve_rate is None, -(row.solve_rate or 0.0), not row.n, row.rank, row.llm)
        )
    is_even = len({frozenset(puzzles) for puzzles in chosen.values()}) <= 1
    other_runs = sum(len(runs.ordered) for puzzles in other.values() for runs in puzzles.values())
    return Board(_number(rows, filters.order), measure, is_even, other_runs)


def tally(
    records: RunsByDay, filters: Filters, name_of: Callable[[str], str], measure: Measure
) -> dict[str, Tally]:
    """Collect each model's runs of a measure, for the day and phase of the filters."""
    tallies: dict[str, Tally] = {}
    for day, groups in records.items():
        if filters.day not in {None, day}:
            continue
        for group, runs in groups.items():
            if group.measure == measure and filters.phase in {None, group.phase}:
                of_model = tallies.setdefault(name_of(group.llm), {})
                puzzle = (day, group.phase)
                of_model[puzzle] = of_model[puzzle].merged(runs) if puzzle in of_model else runs
    return tallies


# --- ranking -----------------------------------------------------------------------------------------------


class _Place(Struct, frozen=True):
    """A model compared with the leader, before ranks are assigned."""

    model: Model
    ratio: Ratio | None
    shared: int
    provisional: bool


def _rank_runs(tallies: dict[str, Tally], counts: Mapping[str, AttemptCounts]) -> list[Row]:
    if not tallies:
        return []
    draws = draws_for(sum(len(puzzles) for puzzles in tallies.values()))
    models = [Model(llm, puzzles, draws) for llm, puzzles in sorted(tallies.items())]
    places = _places(models)
    rows: list[Row] = []
    # The rank under way, and the upper end of its first model's interval.
    rank, first_high = 0, -1.0
    for place, standing in enumerate(places, start=1):
        ratio = standing.ratio
        # A model shares the rank if its interval overlaps that of the first one on it. Comparing with the
        # neighbour instead would let a chain of small steps put the fastest and the slowest on one rank.
        starts_group = ratio is None or ratio.low > first_high
        starts_group = starts_group or standing.provisional != places[place - 2].provisional
        if starts_group:
            rank, first_high = place, ratio.high if ratio is not None else math.inf
        rows.append(_row(standing, rank, counts.get(standing.model.llm, AttemptCounts())))
    return rows


def _places(models: list[Model]) -> list[_Place]:
    """Compare all models with the leader; if one turns out faster, start again with that one."""
    # A leader needs enough runs, and at least half as many puzzles as is usual on this board.
    tried = [model for model in models if model.n >= ENOUGH_RUNS] or models
    usual = middle(len(model.puzzles) for model in tried)
    leader = find_leader(models, [model for model in tried if 2 * len(model.puzzles) >= usual])
    seen = {leader.llm}
    for _ in range(MAX_CHANGES):
        places = sorted((_place(model, leader) for model in models), key=_order)
        first = places[0].model
        if first.llm in seen:
            break
        leader = first
        seen.add(leader.llm)
    else:
        places = sorted((_place(model, leader) for model in models), key=_order)
    return places


def _order(place: _Place) -> tuple[bool, float, int, str]:
    ratio = math.inf if place.ratio is None else place.ratio.value
    return place.provisional, ratio, -place.model.n, place.model.llm


def _place(model: Model, leader: Model) -> _Place:
    shared = len(model.puzzles.keys() & leader.puzzles.keys())
    # Less than half in common: the ratio says little about the puzzles that only one of them ran.
    is_thin = 2 * shared < max(len(model.puzzles), len(leader.puzzles))
    return _Place(model, compare(model, leader), shared, is_thin or model.n < ENOUGH_RUNS)


def _row(place: _Place, rank: int, counts: AttemptCounts) -> Row:
    puzzles = list(place.model.puzzles.values())
    # Mean, deviation and percentile mean nothing over puzzles of different difficulty.
    single = figures(puzzles) if len(puzzles) == 1 else None
    medians = [median_of(runs.ordered) for runs in puzzles]
    median = medians[0]
    if len(medians) > 1:
        median = round(math.exp(sum(math.log(value or ZERO_MS) for value in medians) / len(medians)), 1)
    ratio = place.ratio
    return Row(
        rank=rank,
        llm=place.model.llm,
        slower=None if ratio is None else ratio.value,
        low=None if ratio is None else ratio.low,
        high=None if ratio is None else ratio.high,
        provisional=place.provisional,
        puzzles=len(puzzles),
        shared=place.shared,
        n=place.model.n,
        claimed=sum(runs.claimed for runs in puzzles),
        best=min(runs.ordered[0] for runs in puzzles),
        median=median,
        mean=None if single is None else single.mean,
        stdev=None if single is None else single.stdev,
        p95=None if single is None else single.p95,
        **_correctness(counts),
    )


def _correctness(counts: AttemptCounts) -> dict[str, Any]:
    return {
        "attempts": counts.attempts,
        "solved": counts.solved,
        "solve_rate": counts.solve_rate,
        "tokens": counts.tokens,
        "cost_usd": counts.cost_usd,
    }


def _unsolved(llms: set[str], counts: Mapping[str, AttemptCounts]) -> list[Row]:
    """Make rows for models that have attempts but no run; they come last."""
    empty: dict[str, Any] = dict.fromkeys(("slower", "low", "high", "best", "median", "mean", "stdev", "p95"))
    zero: dict[str, Any] = dict.fromkeys(("rank", "puzzles", "shared", "n", "claimed"), 0)
    return [
        Row(llm=llm, provisional=True, **zero, **empty, **_correctness(counts[llm])) for llm in sorted(llms)
    ]


def _number(rows: list[Row], order: Order) -> list[Row]:
    """Assign ranks to rows without runs, or to all rows if they were sorted by solve rate."""
    # By speed, all models without a run share the rank behind the last one with runs.
    if order == "speed":
        last = sum(row.n > 0 for row in rows) + 1
        return [row if row.n else replace(row, rank=last) for row in rows]
    numbered: list[Row] = []
    before: tuple[float | None, int] | None = None
    for place, row in enumerate(rows, start=1):
        same = (row.solve_rate, row.rank)
        numbered.append(replace(row, rank=numbered[-1].rank if same == before else place))
        before = same
    return numbered
