"""Standings: choose the runs of a board, find the groups that can be compared, and rank each. Pure.

A board has runs of one measure only. Verified and measured runs are ranked; claimed ones are listed after
them, or ranked among themselves if there is nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec.structs import replace

from ..files.attempts import AttemptCounts
from ..files.entries import CLAIMED, EXECUTION, GRADES, MEASURED, SOLVING, VERIFIED, Grade, Group, Measure
from ..files.figures import Runs, figures, median_of
from ..files.filters import Filters, Puzzle
from .board import Board, Row
from .comparison import Fit, Place, count_failures, fit_puzzles, fit_runs, place_models

ENOUGH_PUZZLES = 3
"""With fewer puzzles, a claim is about those alone, and the runs are the unit."""
ENOUGH_RUNS = 3
"""Fewest runs of each puzzle, where runs are the unit."""
MAX_MODELS = 300
"""Limit of models on a board; those with the fewest runs are left out. Clients can invent names."""
MAX_RANKED = 60
"""Limit of models in a group: the work is cubic, 0.1 s at this size, and clients can invent names."""
ZERO_MS = 0.5
"""The value of 0 ms: half of the millisecond that times are rounded to."""
TOO_FEW_PUZZLES = "too few puzzles"
NOT_SHARED = "too few shared puzzles"
TOO_FEW_RUNS = "too few runs"
NOTHING_SOLVED = "nothing solved"
TOO_MANY = f"not among the {MAX_RANKED} models with the most puzzles"

RunsByDay = Mapping[int, Mapping[Group, Runs]]
"""The runs of each day, by recorded name."""
Times = dict[str, dict[Puzzle, Runs]]
"""The runs of each model, under all of its names, by puzzle."""
Unit = Literal["puzzles", "runs"]


def rank(
    records: RunsByDay,
    filters: Filters,
    name_of: Callable[[str], str],
    attempts: Mapping[Measure, Mapping[str, AttemptCounts]],
) -> Board:
    """Rank the models of all records that pass the filters; `name_of` resolves aliases.

    A rank is among all models, whichever of them the caller shows; `filters.llm`, a main name, is never left
    out.
    """
    tallies = {measure: tally(records, filters, name_of, measure) for measure in (SOLVING, EXECUTION)}
    measure = filters.measure
    if measure is None:
        # The contract's times are solving times; execution times are shown only if there is nothing else.
        has_solving = any(tallies[SOLVING].values()) or attempts.get(SOLVING)
        has_execution = any(tallies[EXECUTION].values()) or attempts.get(EXECUTION)
        measure = EXECUTION if has_execution and not has_solving else SOLVING
    chosen, left_out = _leave_out(tallies[measure], filters.llm)
    counts = attempts.get(measure, {})
    grade = filters.grade
    ranked, listed = merge(chosen[VERIFIED], chosen[MEASURED]), chosen[CLAIMED]
    unsolved = {
        llm for llm, model_counts in counts.items() if model_counts.failed and not model_counts.solved
    }
    if grade is None and listed and not ranked and not unsolved:
        grade = CLAIMED
    if grade is not None:
        ranked, listed = chosen[grade], {}
    # Attempts say nothing about claimed times.
    rows, unit, counts_failures = _rank_runs(ranked, counts, is_checked=grade != CLAIMED)
    if grade in {None, MEASURED}:
        rows += [
            _row(llm, {}, counts[llm], unranked=NOTHING_SOLVED) for llm in sorted(unsolved - ranked.keys())
        ]
    if filters.order == "solve_rate":
        rows = _order_by_solve_rate(rows)
    shown = (VERIFIED, MEASURED) if grade is None else (grade,)
    rows = [
        replace(row, **{shown_grade: _count(chosen[shown_grade].get(row.llm, {})) for shown_grade in shown})
        for row in rows
    ]
    rows += [
        replace(
            _row(llm, puzzles, None if llm in ranked else counts.get(llm), unranked=CLAIMED),
            claimed=_count(puzzles),
        )
        for llm, puzzles in sorted(listed.items())
    ]
    other = tallies[EXECUTION if measure == SOLVING else SOLVING]
    other_runs = sum(_count(puzzles) for times in other.values() for puzzles in times.values())
    return Board(rows, measure, grade, unit, counts_failures, left_out, other_runs)


def tally(
    records: RunsByDay, filters: Filters, name_of: Callable[[str], str], measure: Measure
) -> dict[Grade, Times]:
    """Collect each model's runs of a measure by grade, for the day and phase of the filters."""
    tallies: dict[Grade, Times] = {grade: {} for grade in GRADES}
    for day, groups in records.items():
        if filters.day not in {None, day}:
            continue
        for group, runs in groups.items():
            if group.measure == measure and filters.phase in {None, group.phase} and runs.ordered:
                model_times = tallies[group.grade].setdefault(name_of(group.llm), {})
                puzzle = (day, group.phase)
                model_times[puzzle] = model_times[puzzle].merged(runs) if puzzle in model_times else runs
    return tallies


def _leave_out(times: dict[Grade, Times], requested: str | None) -> tuple[dict[Grade, Times], int]:
    """Keep the models with the most runs, those with better grades first; return how many are left out."""
    sizes: dict[str, tuple[int, int]] = {}
    for grade, models in times.items():
        for llm, puzzles in models.items():
            better, runs = sizes.get(llm, (0, 0))
            sizes[llm] = better + (grade != CLAIMED), runs + _count(puzzles)
    if len(sizes) <= MAX_MODELS:
        return times, 0
    kept = set(sorted(sizes, key=lambda llm: (sizes[llm], llm), reverse=True)[:MAX_MODELS]) | {requested}
    shown = {grade: {llm: models[llm] for llm in models if llm in kept} for grade, models in times.items()}
    return shown, len(sizes.keys() - kept)


def merge(first: Times, second: Times) -> Times:
    """Return the runs of both; neither is changed."""
    merged = {llm: dict(puzzles) for llm, puzzles in first.items()}
    for llm, puzzles in second.items():
        model_times = merged.setdefault(llm, {})
        for puzzle, runs in puzzles.items():
            model_times[puzzle] = model_times[puzzle].merged(runs) if puzzle in model_times else runs
    return merged


# --- groups ------------------------------------------------------------------------------------------------


def find_groups(times: Times) -> tuple[list[Times], Unit]:
    """Split the models into groups that can be ranked, the largest first; leave out the rest.

    With one or two shared puzzles in all, each model needs several runs of all puzzles of its group.
    """
    solvers: dict[Puzzle, set[str]] = {}
    for llm, puzzles in times.items():
        for puzzle in puzzles:
            solvers.setdefault(puzzle, set()).add(llm)
    shared = {puzzle: llms for puzzle, llms in solvers.items() if len(llms) > 1}
    if len(shared) < ENOUGH_PUZZLES:
        groups = []
        for llms, group_puzzles in _connected(shared):
            enough = [
                llm
                for llm in llms
                if all(
                    puzzle in times[llm] and len(times[llm][puzzle].ordered) >= ENOUGH_RUNS
                    for puzzle in group_puzzles
                )
            ]
            groups.append(
                {llm: {puzzle: times[llm][puzzle] for puzzle in sorted(group_puzzles)} for llm in enough}
            )
        return [group for group in groups if len(group) > 1], "runs"
    kept = {llm: set(model_times) & shared.keys() for llm, model_times in times.items()}
    # Repeated: without a model a puzzle may have one model left, and without that puzzle a model too few.
    dropped = [llm for llm, puzzles in kept.items() if len(puzzles) < ENOUGH_PUZZLES]
    while dropped:
        llm = dropped.pop()
        for puzzle in kept.pop(llm, ()):
            shared[puzzle].discard(llm)
            if len(shared[puzzle]) == 1:
                (last,) = shared.pop(puzzle)
                kept[last].discard(puzzle)
                if len(kept[last]) == ENOUGH_PUZZLES - 1:
                    dropped.append(last)
    groups = [
        {llm: {puzzle: times[llm][puzzle] for puzzle in sorted(kept[llm])} for llm in sorted(llms)}
        for llms, _ in _connected(shared)
    ]
    return groups, "puzzles"


def _connected(solvers: Mapping[Puzzle, set[str]]) -> list[tuple[list[str], set[Puzzle]]]:
    """Return the connected components of models and puzzles, most models first."""
    ran: dict[str, list[Puzzle]] = {}
    for puzzle, llms in solvers.items():
        for llm in llms:
            ran.setdefault(llm, []).append(puzzle)
    groups = []
    seen: set[Puzzle] = set()
    for start in sorted(solvers):
        if start in seen:
            continue
        seen.add(start)
        puzzles, waiting = {start}, [start]
        models: set[str] = set()
        while waiting:
            for llm in solvers[waiting.pop()] - models:
                models.add(llm)
                new = set(ran[llm]) - puzzles
                puzzles |= new
                waiting += new
        seen |= puzzles
        groups.append((sorted(models), puzzles))
    return sorted(groups, key=lambda group: -len(group[0]))


# --- rows --------------------------------------------------------------------------------------------------


def _rank_runs(
    times: Times, counts: Mapping[str, AttemptCounts], *, is_checked: bool
) -> tuple[list[Row], Unit, bool]:
    rows: list[Row] = []
    groups, unit = find_groups(times)
    # Failures count for all ranked models or for none: a model without attempts has no solve rate.
    counts_failures = (
        is_checked
        and bool(groups)
        and all(llm in counts and counts[llm].by_puzzle for group in groups for llm in group)
    )
    left_out: set[str] = set()
    number = 0
    for group in groups:
        by_puzzles = sorted(group, key=lambda llm: (-len(group[llm]), -_count(group[llm]), llm))
        compared = sorted(by_puzzles[:MAX_RANKED])
        left_out.update(by_puzzles[MAX_RANKED:])
        fit = _fit({llm: group[llm] for llm in compared}, unit)
        if fit is None:
            continue
        if counts_failures:
            fit = count_failures(fit, {llm: counts[llm].by_puzzle for llm in compared})
        number += 1
        rows += [
            _row(place.llm, times[place.llm], counts.get(place.llm), place, number)
            for place in place_models(fit)
        ]
    ranked = {row.llm for row in rows}
    unranked = sorted(times.keys() - ranked, key=lambda llm: (-len(times[llm]), -_count(times[llm]), llm))
    for llm in unranked:
        reason = TOO_FEW_PUZZLES if len(times[llm]) < ENOUGH_PUZZLES else NOT_SHARED
        if llm in left_out:
            reason = TOO_MANY
        elif unit == "runs" and any(len(runs.ordered) < ENOUGH_RUNS for runs in times[llm].values()):
            reason = TOO_FEW_RUNS
        rows.append(_row(llm, times[llm], counts.get(llm), unranked=reason))
    return rows, unit, counts_failures


def _fit(group: Times, unit: Unit) -> Fit | None:
    if unit == "runs":
        return fit_runs(
            {
                llm: {puzzle: [_log(time) for time in runs.ordered] for puzzle, runs in puzzles.items()}
                for llm, puzzles in group.items()
            }
        )
    return fit_puzzles(
        {
            llm: {puzzle: _middle_log(runs.ordered) for puzzle, runs in puzzles.items()}
            for llm, puzzles in group.items()
        }
    )


def _log(milliseconds: int) -> float:
    return math.log(milliseconds or ZERO_MS)


def _middle_log(ordered: list[int]) -> float:
    """Return the median of the logarithms."""
    return (_log(ordered[(len(ordered) - 1) // 2]) + _log(ordered[len(ordered) // 2])) / 2


def _count(puzzles: Mapping[Puzzle, Runs]) -> int:
    return sum(len(runs.ordered) for runs in puzzles.values())


def _row(
    llm: str,
    puzzles: Mapping[Puzzle, Runs],
    counts: AttemptCounts | None,
    place: Place | None = None,
    group: int | None = None,
    unranked: str | None = None,
) -> Row:
    """Make a row; the caller fills in how many of its runs have which grade."""
    counts = counts or AttemptCounts()
    puzzle_runs = list(puzzles.values())
    # Mean, deviation and percentile are meaningless over puzzles of different difficulty.
    single = figures(puzzle_runs) if len(puzzle_runs) == 1 else None
    medians = [median_of(runs.ordered) for runs in puzzle_runs]
    median = medians[0] if medians else None
    if len(medians) > 1:
        median = round(math.exp(sum(math.log(value or ZERO_MS) for value in medians) / len(medians)), 1)
    return Row(
        rank=None if place is None else place.rank,
        rank_high=None if place is None else place.rank_high,
        llm=llm,
        group=group,
        unranked=unranked,
        slower=None if place is None else place.ratio,
        low=None if place is None else place.low,
        high=None if place is None else place.high,
        puzzles=len(puzzle_runs),
        n=_count(puzzles),
        verified=0,
        measured=0,
        claimed=0,
        best=min((runs.ordered[0] for runs in puzzle_runs), default=None),
        median=median,
        mean=None if single is None else single.mean,
        stdev=None if single is None else single.stdev,
        p95=None if single is None else single.p95,
        attempts=counts.attempts,
        solved=counts.solved,
        wrong=counts.wrong,
        solve_rate=counts.solve_rate,
        tokens=counts.tokens,
        cost_usd=counts.cost_usd,
    )


def _order_by_solve_rate(rows: list[Row]) -> list[Row]:
    """Sort by solve rate, then by speed; models with the same rate share a rank. Without a rate: no rank."""
    ordered = sorted(rows, key=lambda row: math.inf if row.solve_rate is None else -row.solve_rate)
    rates = [row.solve_rate for row in ordered]
    first = {rate: place for place, rate in reversed(list(enumerate(rates, start=1)))}
    last = {rate: place for place, rate in enumerate(rates, start=1)}
    return [
        replace(row, rank=None, rank_high=None, unranked=row.unranked or "no attempts")
        if row.solve_rate is None
        else replace(row, rank=first[row.solve_rate], rank_high=last[row.solve_rate], unranked=None)
        for row in ordered
    ]
