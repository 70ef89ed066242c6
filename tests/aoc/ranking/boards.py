"""Boards for tests: owns how one is made from the times of each model by day."""

from typing import Any

from bridgehead.aoc.files.entries import SOLVING, Group, Measure
from bridgehead.aoc.ranking.board import AttemptCounts, Board, Filters
from bridgehead.aoc.ranking.figures import Runs
from bridgehead.aoc.ranking.standings import rank

Times = dict[str, dict[int, list[int]]]
"""The times of each model by day."""


def board(times: Times, attempts: dict[str, AttemptCounts] | None = None, **filters: Any) -> Board:
    """Rank some times, all of phase 1."""
    records: dict[int, dict[Group, Runs]] = {}
    for llm, days in times.items():
        for day, of_day in days.items():
            records.setdefault(day, {})[Group(llm, 1, SOLVING)] = Runs(sorted(of_day))
    counts: dict[Measure, dict[str, AttemptCounts]] = {"solving": attempts or {}}
    return rank(records, Filters(**filters), str, counts)


def standing(found: Board) -> list[tuple[int, str]]:
    """Return each rank with its model."""
    return [(row.rank, row.llm) for row in found.rows]
