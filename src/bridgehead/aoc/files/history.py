"""History: single runs, newest first, page by page. Pure.

A page names the number of older runs, which is the cursor of the next page. Counted from the oldest run, it
stays right while new runs arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from msgspec import Struct

from ..files.entries import Entry, Grade, Measure, id_of, moment_of
from ..files.names import canonical_name
from .filters import Filters


class Run(Struct, frozen=True):
    """One run as it was recorded; the time is in milliseconds."""

    day: int
    phase: int
    llm: str
    speed_ms: int
    timestamp: str
    measure: Measure
    grade: Grade
    id: str
    withdrawn: bool


class Page(Struct, frozen=True):
    """One page of the runs that pass the filters; `total` counts all of them."""

    runs: list[Run]
    total: int
    older: int | None
    """The cursor of the next page: how many older runs there are. None on the last page."""


class PageCut(NamedTuple):
    """How many runs are on a page, and how many newer and older ones pass the same filter."""

    newer: int
    size: int
    older: int


def find_runs(
    records: Mapping[int, list[Entry]],
    filters: Filters,
    name_of: Callable[[str], str],
    llms: Collection[str] | None,
) -> list[tuple[int, Entry]]:
    """Return the runs that pass the filters, newest first, withdrawn ones too; `llms` are main names."""
    matches = [
        (day, entry)
        for day, entries in records.items()
        for entry in entries
        if filters.phase in {None, entry.phase}
        and filters.measure in {None, entry.measure}
        and filters.grade in {None, entry.grade}
        and (llms is None or name_of(canonical_name(entry.llm)) in llms)
    ]
    matches.sort(key=lambda pair: moment_of(pair[1].timestamp), reverse=True)
    return matches


def as_run(day: int, entry: Entry) -> Run:
    """Convert an entry to the form that tools and exports show."""
    return Run(
        day,
        entry.phase,
        entry.llm,
        entry.time,
        entry.timestamp,
        entry.measure,
        entry.grade,
        id_of(day, entry),
        entry.is_withdrawn,
    )


def cut_page(total: int, limit: int, older: int | None) -> PageCut:
    """Choose the newest runs, or the newest of the `older` oldest ones."""
    start = 0 if older is None else max(0, total - older)
    size = min(limit, total - start)
    return PageCut(start, size, total - start - size)
