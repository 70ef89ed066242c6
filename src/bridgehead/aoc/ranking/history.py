"""History: single runs, the newest first, page by page. Pure.

A page ends with how many older runs there are. That number begins the next page, and stays right while new
runs come in at the front.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct

from ..files.entries import Entry, Measure, Source
from ..files.names import canonical_name
from .board import Filters


class Run(Struct, frozen=True):
    """One run as it was recorded; the time is in milliseconds."""

    day: int
    phase: int
    llm: str
    speed_ms: int
    timestamp: str
    measure: Measure
    source: Source
    withdrawn: bool


class Page(Struct, frozen=True):
    """Some runs out of all that fit."""

    runs: list[Run]
    total: int
    older: int | None
    """How many older ones there are, to ask for next; None on the last page."""


def find_runs(
    records: Mapping[int, list[Entry]],
    filters: Filters,
    name_of: Callable[[str], str],
    llms: Collection[str] | None,
) -> list[tuple[int, Entry]]:
    """Find every run that fits, withdrawn ones too, the newest first; `llms` are the names that may count."""
    fitting = [
        (day, entry)
        for day, entries in records.items()
        for entry in entries
        if filters.phase in {None, entry.phase}
        and filters.measure in {None, entry.measure}
        and (llms is None or name_of(canonical_name(entry.llm)) in llms)
    ]
    fitting.sort(key=lambda pair: sortable_moment(pair[1].timestamp), reverse=True)
    return fitting


def as_run(day: int, entry: Entry) -> Run:
    """Return a run as it is shown."""
    return Run(
        day,
        entry.phase,
        entry.llm,
        entry.time,
        entry.timestamp,
        entry.measure,
        entry.source,
        entry.is_withdrawn,
    )


def cut_page(found: list[tuple[int, Entry]], limit: int, older: int | None) -> Page:
    """Cut out the newest runs, or the newest of the `older` oldest ones."""
    total = len(found)
    start = 0 if older is None else max(0, total - older)
    page = [as_run(day, entry) for day, entry in found[start : start + limit]]
    left = total - start - len(page)
    return Page(page, total, left or None)


def sortable_moment(timestamp: str) -> str:
    """Return a text that sorts as the moment does; the original program writes 7 decimals, this one 3."""
    if timestamp.endswith("Z"):
        return timestamp[:-1]
    from datetime import UTC, datetime

    try:
        return datetime.fromisoformat(timestamp).astimezone(UTC).replace(tzinfo=None).isoformat()
    except ValueError:
        return ""
