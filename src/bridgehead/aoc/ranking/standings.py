"""Standings: choose the runs and failures of a board, rank the models, and make the rows. Pure.

A board has runs of one measure only. Verified and measured runs are ranked; claimed ones are listed after
them, or ranked among themselves if there is nothing else. A failure counts like a time: only if the attempt
could have reached a grade of the board.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from ..files.attempts import AttemptEnd
from ..files.entries import CLAIMED, EXECUTION, GRADES, MEASURED, SOLVING, VERIFIED, Grade, Group, Measure
from ..files.figures import Runs, figures, median_of
from ..files.filters import Filters, Puzzle
from ..files.names import canonical_name, look_alikes
from .comparison import (
    LEAST_ATTEMPTS,
    LEAST_DAYS,
    ZERO_MS,
    Place,
    Tries,
    Unit,
    cost_of,
    place_models,
    why_unranked,
)

MAX_MODELS = 300
"""Limit of models on a board; those with the fewest runs are left out. Clients can invent names."""
MAX_RANKED = 60
"""Limit of ranked models: the work is quadratic, and clients can invent names."""
NOTHING_SOLVED = "nothing solved"
TOO_MANY = f"not among the {MAX_RANKED} models with the most days"

RunsByDay = Mapping[int, Mapping[Group, Runs]]
"""The runs of each day, by recorded name."""
Times = dict[str, dict[Puzzle, Runs]]
"""The runs of each model, under all of its names, by puzzle."""
AttemptsByGrade = Mapping[str, Mapping[Grade, "Attempted"]]


class Row(Struct, frozen=True, kw_only=True):
    """One model on the board; times are in milliseconds."""

    rank: int | None
    """The best rank that the attempts allow for; None if the model is not ranked."""
    rank_high: int | None
    """The worst rank that the attempts allow for."""
    llm: str
    unranked: str | None
    """Why the model has no rank."""
    slower: float | None
    """Time per solved answer, as a multiple of the leader's, over the puzzles that both tried."""
    low: float | None
    high: float | None
    per_solved: float | None
    """Time per solved answer over the model's own puzzles, failures included; None if none is solved."""
    puzzles: int
    """Tried ones, solved or not."""
    n: int
    """Runs that have a time."""
    verified: int
    measured: int
    claimed: int
    """Runs by grade."""
    best: int | None
    median: float | None
    """Over several puzzles, the geometric mean of their medians."""
    mean: float | None
    stdev: float | None
    p95: int | None
    solved: int
    """Checked attempts that were solved. Claimed times are not checked."""
    failed: int
    wrong: int
    """Wrong answers handed in."""
    solve_rate: float | None
    tokens: float | None
    """Mean of an attempt, which is one phase."""
    cost_usd: float | None
    """Mean of an attempt."""
    models: list[str]
    """The models that agents of this name ran with, as far as the benchmark knows."""


class Board(Struct, frozen=True):
    """All models: ranked ones, then others by their time per solved answer, then claimed times."""

    rows: list[Row]
    measure: Measure
    grade: Grade | None
    """The only grade on the board; None if verified and measured runs are ranked together."""
    unit: Unit
    """The scope of a claim: similar days or, with one or two days, further attempts at these puzzles."""
    left_out: int
    """Models with too few runs to be shown among so many."""
    other_runs: int
    """How many runs have the other measure, which this board does not show."""
    look_alikes: list[list[str]]
    """Different names that a reader cannot tell apart."""
    withdrawn: dict[str, int] = {}
    """How many withdrawn runs each model has; they do not count."""


class Attempted(Struct):
    """What a model's attempts of one grade add to its times."""

    failed: dict[Puzzle, list[int | None]] = field(default_factory=dict)
    """How long failed attempts took; None if nobody knows, because the attempt was abandoned."""
    wrong: int = 0
    tokens: list[int] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    """What the attempts were made with, as far as the benchmark knows."""


def rank(
    records: RunsByDay,
    filters: Filters,
    name_of: Callable[[str], str],
    ends: Iterable[AttemptEnd],
    now: float,
) -> Board:
    """Rank the models of all records that pass the filters; `name_of` resolves aliases.

    A rank is among all models, whichever of them the caller shows; `filters.llm`, a main name, is never left
    out.
    """
    tallies = {measure: tally(records, filters, name_of, measure) for measure in (SOLVING, EXECUTION)}
    attempted = count_attempts(ends, filters, name_of, now)
    measure = filters.measure
    if measure is None:
        # The contract's times are solving times; execution times are shown only if there is nothing else.
        has_solving = any(tallies[SOLVING].values()) or attempted[SOLVING]
        has_execution = any(tallies[EXECUTION].values()) or attempted[EXECUTION]
        measure = EXECUTION if has_execution and not has_solving else SOLVING
    chosen, left_out = _leave_out(tallies[measure], attempted[measure], filters.llm)
    counts = {llm: attempted[measure][llm] for llm in attempted[measure] if llm in chosen}
    shown: tuple[Grade, ...] = (VERIFIED, MEASURED) if filters.grade is None else (filters.grade,)
    grade = filters.grade
    ranked = _gather(chosen, counts, shown)
    listed = _gather(chosen, counts, (CLAIMED,)) if grade is None else {}
    if not ranked and listed:
        grade, shown, ranked, listed = CLAIMED, (CLAIMED,), listed, {}
    places, reasons, unit = _place(ranked)
    maker = _RowMaker(chosen, counts)
    rows = [maker.row(place.llm, ranked[place.llm], shown, place=place) for place in places]
    rows += [maker.row(llm, ranked[llm], shown, why=reasons[llm]) for llm in _by_cost(ranked, reasons)]
    if filters.order == "solve_rate":
        rows = _order_by_solve_rate(rows)
    rows += [maker.row(llm, listed[llm], (CLAIMED,), why=CLAIMED) for llm in _by_cost(listed, listed)]
    other = tallies[EXECUTION if measure == SOLVING else SOLVING]
    other_runs = sum(_count(puzzles) for times in other.values() for puzzles in times.values())
    alike = look_alikes(row.llm for row in rows)
    return Board(rows, measure, grade, unit, left_out, other_runs, alike)


# --- what counts -------------------------------------------------------------------------------------------


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


def merge(first: Times, second: Times) -> Times:
    """Return the runs of both; neither is changed."""
    merged = {llm: dict(puzzles) for llm, puzzles in first.items()}
    for llm, puzzles in second.items():
        model_times = merged.setdefault(llm, {})
        for puzzle, runs in puzzles.items():
            model_times[puzzle] = model_times[puzzle].merged(runs) if puzzle in model_times else runs
    return merged


def count_attempts(
    ends: Iterable[AttemptEnd], filters: Filters, name_of: Callable[[str], str], now: float
) -> dict[Measure, dict[str, dict[Grade, Attempted]]]:
    """Collect what attempts add, by measure, model and grade; one that goes on counts once abandoned."""
    attempted: dict[Measure, dict[str, dict[Grade, Attempted]]] = {SOLVING: {}, EXECUTION: {}}
    owners: dict[str, str | None] = {}
    ends = sorted(ends, key=lambda end: end.started.seconds)
    for end in ends:
        owners.setdefault(name_of(canonical_name(end.step.llm)), end.started.owner)
    for end in ends:
        step = end.step
        if not end.is_over(now) or filters.phase not in {None, step.phase}:
            continue
        is_failed = step.outcome not in {"solved", "unchecked"}
        llm = name_of(canonical_name(step.llm))
        if is_failed and end.started.owner not in {None, owners[llm]}:
            llm = f"{llm} (by {end.started.owner})"  # nobody fails in another's name
        of_model = attempted[step.measure].setdefault(llm, {})
        grade = end.started.grade if is_failed else step.grade
        # Version 0.3 wrote the failures of `bench` and `run` without a grade; both saw them fail.
        if (
            is_failed
            and grade == CLAIMED
            and (step.measure == EXECUTION or step.attempt.startswith("bench-"))
        ):
            grade = MEASURED
        own = of_model.setdefault(grade, Attempted())
        own.wrong += end.wrong
        if step.tokens is not None:
            own.tokens.append(step.tokens)
        if step.cost_usd is not None:
            own.costs.append(step.cost_usd)
        if step.details is not None and step.details.model is not None:
            own.models.add(step.details.model)
        if is_failed:
            failed = own.failed.setdefault((end.day, step.phase), [])
            failed.append(step.time if step.outcome == "failed" else None)
    return attempted


def _leave_out(
    tallies: dict[Grade, Times], attempted: AttemptsByGrade, requested: str | None
) -> tuple[dict[str, dict[Grade, dict[Puzzle, Runs]]], int]:
    """Return the times of the models with the most runs, better grades first, and how many are left out."""
    models: dict[str, dict[Grade, dict[Puzzle, Runs]]] = {
        llm: {} for llm, by_grade in attempted.items() if any(own.failed for own in by_grade.values())
    }
    for grade, times in tallies.items():
        for llm, puzzles in times.items():
            models.setdefault(llm, {})[grade] = puzzles
    if len(models) <= MAX_MODELS:
        return models, 0

    def size(llm: str) -> tuple[int, int, str]:
        return len(models[llm].keys() - {CLAIMED}), sum(map(_count, models[llm].values())), llm

    kept = set(sorted(models, key=size, reverse=True)[:MAX_MODELS]) | {requested}
    return {llm: models[llm] for llm in models if llm in kept}, len(models.keys() - kept)


def _gather(
    chosen: Mapping[str, Mapping[Grade, Mapping[Puzzle, Runs]]],
    counts: AttemptsByGrade,
    grades: tuple[Grade, ...],
) -> dict[str, dict[Puzzle, Tries]]:
    """Return the tries of the models that have any of these grades."""
    solved: dict[str, dict[Puzzle, list[int]]] = {}
    failed: dict[str, dict[Puzzle, list[int | None]]] = {}
    for llm, by_grade in chosen.items():
        for grade in grades:
            for puzzle, runs in by_grade.get(grade, {}).items():
                solved.setdefault(llm, {}).setdefault(puzzle, []).extend(runs.ordered)
            for puzzle, times in counts.get(llm, {}).get(grade, Attempted()).failed.items():
                failed.setdefault(llm, {}).setdefault(puzzle, []).extend(times)
    # An abandoned attempt takes as long as the longest one of the board, or quitting would be free.
    known = [t for puzzles in failed.values() for times in puzzles.values() for t in times if t is not None]
    known = known or [max(times) for puzzles in solved.values() for times in puzzles.values()]
    limit = max(known, default=0)
    return {
        llm: {
            puzzle: Tries(
                solved.get(llm, {}).get(puzzle, ()),
                [limit if t is None else t for t in failed.get(llm, {}).get(puzzle, ())],
            )
            for puzzle in sorted(solved.get(llm, {}).keys() | failed.get(llm, {}).keys())
        }
        for llm in solved.keys() | failed.keys()
    }


def _count(puzzles: Mapping[Puzzle, Runs]) -> int:
    return sum(len(runs.ordered) for runs in puzzles.values())


# --- ranks -------------------------------------------------------------------------------------------------


def _place(models: Mapping[str, dict[Puzzle, Tries]]) -> tuple[list[Place], dict[str, str], Unit]:
    """Rank the models; return also why the others have no rank, and the unit of the comparison."""
    tried_by: dict[int, set[str]] = {}
    for llm, tries in models.items():
        for day, _ in tries:
            tried_by.setdefault(day, set()).add(llm)
    shared_days = [day for day, llms in tried_by.items() if len(llms) > 1]
    unit: Unit = "days" if len(shared_days) >= LEAST_DAYS else "attempts"
    comparable = models
    if unit == "attempts":
        comparable = {
            llm: {
                puzzle: cell
                for puzzle, cell in tries.items()
                if len(cell.solved) + len(cell.failed) >= LEAST_ATTEMPTS
            }
            for llm, tries in models.items()
        }
    reasons = why_unranked(comparable, unit)
    reasons |= {
        llm: NOTHING_SOLVED for llm in models if not any(cell.solved for cell in models[llm].values())
    }
    candidates = [llm for llm in models if llm not in reasons]

    def size(llm: str) -> tuple[int, int, str]:
        return -len({day for day, _ in models[llm]}), -sum(len(c.solved) for c in models[llm].values()), llm

    for llm in sorted(candidates, key=size)[MAX_RANKED:]:
        reasons[llm] = TOO_MANY
    kept = {llm: comparable[llm] for llm in candidates if llm not in reasons}
    return place_models(kept, unit), reasons, unit


def _by_cost(models: Mapping[str, dict[Puzzle, Tries]], llms: Iterable[str]) -> list[str]:
    return sorted(llms, key=lambda llm: (cost_of(models[llm]), llm))


def _order_by_solve_rate(rows: list[Row]) -> list[Row]:
    """Sort by solve rate, then by cost; models with the same rate share a rank. Without a rate: no rank."""
    ordered = sorted(rows, key=lambda row: math.inf if row.solve_rate is None else -row.solve_rate)
    rates = [row.solve_rate for row in ordered]
    first = {rate: place for place, rate in reversed(list(enumerate(rates, start=1)))}
    last = {rate: place for place, rate in enumerate(rates, start=1)}
    return [
        replace(row, rank=None, rank_high=None, unranked=row.unranked or "no checked attempts")
        if row.solve_rate is None
        else replace(row, rank=first[row.solve_rate], rank_high=last[row.solve_rate], unranked=None)
        for row in ordered
    ]


class _RowMaker:
    """Makes rows from the runs and attempts of all models."""

    def __init__(
        self,
        chosen: Mapping[str, Mapping[Grade, Mapping[Puzzle, Runs]]],
        counts: AttemptsByGrade,
    ) -> None:
        self._chosen = chosen
        self._counts = counts

    def row(
        self,
        llm: str,
        tries: Mapping[Puzzle, Tries],
        grades: tuple[Grade, ...],
        *,
        place: Place | None = None,
        why: str | None = None,
    ) -> Row:
        """Make the row of one model, from runs of these grades."""
        own = self._chosen[llm]
        counts = self._counts.get(llm, {})
        attempted = [counts[grade] for grade in grades if grade in counts]
        tokens = list(chain.from_iterable(attempts.tokens for attempts in attempted))
        costs = list(chain.from_iterable(attempts.costs for attempts in attempted))
        puzzle_runs: dict[Puzzle, Runs] = {}
        for puzzle, runs in chain.from_iterable(own.get(grade, {}).items() for grade in grades):
            puzzle_runs[puzzle] = puzzle_runs[puzzle].merged(runs) if puzzle in puzzle_runs else runs
        # Mean, deviation and percentile are meaningless over puzzles of different difficulty.
        single = figures(list(puzzle_runs.values())) if len(puzzle_runs) == 1 else None
        medians = [median_of(runs.ordered) for runs in puzzle_runs.values()]
        median = medians[0] if medians else None
        if len(medians) > 1:
            median = round(math.exp(sum(math.log(value or ZERO_MS) for value in medians) / len(medians)), 1)
        by_grade = {grade: _count(own.get(grade, {})) for grade in grades}
        failed = sum(len(cell.failed) for cell in tries.values())
        solved = sum(by_grade.get(grade, 0) for grade in (VERIFIED, MEASURED))
        return Row(
            rank=None if place is None else place.rank,
            rank_high=None if place is None else place.rank_high,
            llm=llm,
            unranked=why,
            slower=None if place is None else place.ratio,
            low=None if place is None else place.low,
            high=None if place is None else place.high,
            per_solved=round(cost_of(tries), 1) if medians else None,
            puzzles=len(tries),
            n=sum(by_grade.values()),
            verified=by_grade.get(VERIFIED, 0),
            measured=by_grade.get(MEASURED, 0),
            claimed=by_grade.get(CLAIMED, 0),
            best=min((runs.ordered[0] for runs in puzzle_runs.values()), default=None),
            median=median,
            mean=None if single is None else single.mean,
            stdev=None if single is None else single.stdev,
            p95=None if single is None else single.p95,
            solved=solved,
            failed=failed,
            wrong=sum(attempts.wrong for attempts in attempted),
            solve_rate=solved / (solved + failed) if solved + failed and grades != (CLAIMED,) else None,
            tokens=sum(tokens) / len(tokens) if tokens else None,
            cost_usd=sum(costs) / len(costs) if costs else None,
            models=sorted(set().union(*(attempts.models for attempts in attempted))),
        )
