"""History: single runs, the newest first, page by page. Pure.

A page ends with how many older runs there are. That number begins the next page, and stays right while new
runs come in at the front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ..files.entries import Entry
from .board import Filters


class Run(Struct, frozen=True):
    """One run as it was recorded; the time is in milliseconds."""

    day: int
    phase: int
    llm: str
    speed_ms: int
    timestamp: str


class Page(Struct, frozen=True):
    """Some runs out of all that fit."""

    runs: list[Run]
    total: int
    older: int | None
    """How many older ones there are, to ask for next; None on the last page."""


def page(
    records: Mapping[int, list[Entry]],
    filters: Filters,
    name_of: Callable[[str], str],
    *,
    limit: int,
    older: int | None,
) -> Page:
    """Give the newest runs that fit, or those among the `older` oldest ones."""
    llm = None if filters.llm is None else name_of(filters.llm)
    fitting = [
        (day, entry)
        for day, entries in records.items()
        for entry in entries
        if (filters.phase is None or entry.phase == filters.phase)
        and (llm is None or name_of(entry.llm) == llm)
    ]
    fitting.sort(key=lambda pair: moment(pair[1].timestamp), reverse=True)
    total = len(fitting)
    start = 0 if older is None else max(0, total - older)
    runs = [Run(day, e.phase, e.llm, e.time, e.timestamp) for day, e in fitting[start : start + limit]]
    left = total - start - len(runs)
    return Page(runs, total, left or None)


def moment(timestamp: str) -> str:
    """Give a text that sorts as the moment does, however many decimals it was written with."""
    if timestamp.endswith("Z"):
        return timestamp[:-1]
    from datetime import UTC, datetime

    try:
        return datetime.fromisoformat(timestamp).astimezone(UTC).replace(tzinfo=None).isoformat()
    except ValueError:
        return ""
