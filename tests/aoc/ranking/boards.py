"""Boards for tests: owns how one is made from the times of each model by day."""

from typing import Any

from bridgehead.aoc.files.attempts import AttemptCounts, Tries
from bridgehead.aoc.files.entries import SOLVING, Grade, Group, Measure
from bridgehead.aoc.files.figures import Runs
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.ranking.board import Board
from bridgehead.aoc.ranking.standings import rank

Times = dict[str, dict[int, list[int]]]
"""The times of each model by day."""


def board(
    times: Times,
    attempts: dict[str, AttemptCounts] | None = None,
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
    counts: dict[Measure, dict[str, AttemptCounts]] = {"solving": attempts or {}}
    return rank(records, Filters(**filters), str, counts)


def tried(solved: dict[int, int], attempts: int, wrong: int = 0) -> AttemptCounts:
    """Count attempts: how many of `attempts` were solved on each day."""
    total = sum(solved.values())
    return AttemptCounts(
        attempts=attempts * len(solved),
        solved=total,
        failed=attempts * len(solved) - total,
        wrong=wrong,
        by_puzzle={(day, 1): Tries(count, attempts) for day, count in solved.items()},
    )


def rank_ranges(found: Board) -> list[tuple[str, str]]:
    """Return each model with its range of ranks, or why it has none."""
    return [(row.llm, row.unranked or f"{row.rank}-{row.rank_high}") for row in found.rows]
