"""Leaderboard: ranks LLMs by the median of their times. Pure.

Times of different puzzles are only as comparable as the puzzles are: each row says on how many puzzles it
stands, and a board whose rows stand on different ones is marked as uneven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import UNSET, Struct, UnsetType

from .figures import Figures, Runs, figures

Puzzle = tuple[int, int]
"""A day and a phase."""


class Filters(Struct, frozen=True):
    """Which runs count; None lets all of them."""

    day: int | None = None
    phase: int | None = None
    llm: str | None = None


def filters(
    day: int | UnsetType = UNSET, phase: int | UnsetType = UNSET, llm: str | UnsetType = UNSET
) -> Filters:
    """Make filters of the arguments of a call, of which any may be missing."""
    return Filters(day or None, phase or None, llm or None)


class Row(Struct, frozen=True, kw_only=True):
    """One LLM on the board; times are in milliseconds."""

    rank: int
    llm: str
    puzzles: int
    n: int
    best: int
    median: float
    mean: float
    stdev: float | None
    p95: int | None
    slower: float | None
    """How many times the best median; None where that is zero and this is not."""


class Board(Struct, frozen=True):
    """All LLMs, ranked."""

    rows: list[Row]
    is_even: bool
    """Whether all rows stand on the same puzzles."""


RunsByDay = Mapping[int, Mapping[int, Mapping[str, Runs]]]
"""The runs of each day, by phase and by the name that they were recorded under."""
Tally = dict[Puzzle, list[Runs]]
"""The runs of one LLM, which may have several names, by puzzle."""


def ranked(records: RunsByDay, filters: Filters, name_of: Callable[[str], str]) -> Board:
    """Rank the LLMs of all records that pass the filters; `name_of` gives the name that one counts under.

    With a filter for one LLM its rank and its ratio are still those among all.
    """
    tallies = tallied(records, filters, name_of)
    is_even = len({frozenset(tally) for tally in tallies.values()}) <= 1
    rows = _rows({llm: (figures(all_runs(tally)), len(tally)) for llm, tally in tallies.items()})
    if filters.llm is not None:
        wanted = name_of(filters.llm)
        rows = [row for row in rows if row.llm == wanted]
    return Board(rows, is_even)


def tallied(records: RunsByDay, filters: Filters, name_of: Callable[[str], str]) -> dict[str, Tally]:
    """Gather the runs of each LLM on the day and phase that the filters name."""
    tallies: dict[str, Tally] = {}
    for puzzle, name, runs in _chosen(records, filters):
        llm = name_of(name)
        tallies.setdefault(llm, {}).setdefault(puzzle, []).append(runs)
    return tallies


def _chosen(records: RunsByDay, filters: Filters) -> Iterator[tuple[Puzzle, str, Runs]]:
    for day, phases in records.items():
        if filters.day not in {None, day}:
            continue
        for phase, by_llm in phases.items():
            if filters.phase in {None, phase}:
                for llm, runs in by_llm.items():
                    yield (day, phase), llm, runs


def all_runs(tally: Tally) -> list[Runs]:
    """Give the runs of an LLM on all its puzzles."""
    return [runs for of_puzzle in tally.values() for runs in of_puzzle]


def _rows(found: dict[str, tuple[Figures, int]]) -> list[Row]:
    order = sorted(found.items(), key=lambda item: (item[1][0].median, item[1][0].best, item[0]))
    rows: list[Row] = []
    for place, (llm, (of_llm, puzzles)) in enumerate(order, start=1):
        shares_rank = bool(rows) and rows[-1].median == of_llm.median
        rows.append(
            Row(
                rank=rows[-1].rank if shares_rank else place,
                llm=llm,
                puzzles=puzzles,
                n=of_llm.n,
                best=of_llm.best,
                median=of_llm.median,
                mean=of_llm.mean,
                stdev=of_llm.stdev,
                p95=of_llm.p95,
                slower=_ratio(of_llm.median, order[0][1][0].median),
            )
        )
    return rows


def _ratio(median: float, best: float) -> float | None:
    if median == best:
        return 1.0
    return median / best if best else None
