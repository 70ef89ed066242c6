"""Boards for tests: owns how one is made from the times of each model by day."""

from typing import Any

from bridgehead.aoc.files.attempts import AttemptEnd, AttemptStep
from bridgehead.aoc.files.entries import MEASURED, SOLVING, Grade, Group
from bridgehead.aoc.files.figures import Runs
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.ranking.standings import Board, rank

Times = dict[str, dict[int, list[int]]]
"""The times of each model by day."""
NOW = 2_000_000_000.0


def board(
    times: Times,
    ends: list[AttemptEnd] | None = None,
    *,
    claimed: Times | None = None,
    verified: Times | None = None,
    **filters: Any,
) -> Board:
    """Rank some measured times, all of phase 1."""
    records: dict[int, dict[Group, Runs]] = {}
    graded: dict[Grade, Times] = {
        "measured": times,
        "claimed": claimed or {},
        "verified": verified or {},
    }
    for grade, of_grade in graded.items():
        for llm, days in of_grade.items():
            for day, of_day in days.items():
                records.setdefault(day, {})[Group(llm, 1, SOLVING, grade)] = Runs(sorted(of_day))
    return rank(records, Filters(**filters), str, ends or [], NOW)


def failed(llm: str, day: int, milliseconds: int | None, grade: Grade = MEASURED, **more: Any) -> AttemptEnd:
    """Make an attempt that failed after a time; without one it was abandoned long ago."""
    outcome: Any = "started" if milliseconds is None else "failed"
    wrong = more.pop("wrong", 0)
    step = AttemptStep(f"{llm}{day}", outcome, llm, 1, "", 0.0, time=milliseconds, **more)
    started = AttemptStep(step.attempt, "started", llm, 1, "", 0.0, grade=grade)
    return AttemptEnd(day, step, wrong, started)


def rank_ranges(found: Board) -> list[tuple[str, str]]:
    """Return each model with its range of ranks, or why it has none."""
    return [(row.llm, row.unranked or f"{row.rank}-{row.rank_high}") for row in found.rows]
