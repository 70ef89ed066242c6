"""History: single runs, newest first, page by page. Pure.

A page names the number of older runs, which is the cursor of the next page. Counted from the oldest run, it
stays right while new runs arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from .attempts import AttemptEnd
from .entries import CLAIMED, Details, Entry, Grade, Measure, id_of, moment_of
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


class Attempt(Struct, frozen=True):
    """One attempt, solved or not, in one flat row for tables; times are in milliseconds."""

    day: int
    phase: int
    llm: str
    outcome: Literal["solved", "claimed", "failed", "abandoned"]
    """Claimed: nobody checked the answer, or it was seen before."""
    speed_ms: int | None
    """None if the attempt was abandoned."""
    timestamp: str
    measure: Measure
    grade: Grade
    """Of a failure: the grade that its time could have reached."""
    id: str | None
    """None for what is no record: a failure."""
    withdrawn: bool
    attempt: str | None
    tries: int | None
    wrong: int | None
    tokens: int | None
    cost_usd: float | None
    """Like the tokens, of this phase alone."""
    agent: str | None
    version: str | None
    model: str | None
    language: str | None
    host: str | None


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
    is_wanted: Callable[[str], bool],
) -> list[tuple[int, Entry]]:
    """Return the runs that pass the filters, newest first, withdrawn ones too."""
    matches = [
        (day, entry)
        for day, entries in records.items()
        for entry in entries
        if filters.phase in {None, entry.phase}
        and filters.measure in {None, entry.measure}
        and filters.grade in {None, entry.grade}
        and is_wanted(entry.llm)
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


def recorded_attempt(day: int, entry: Entry) -> Attempt:
    """Convert a record to a row of an export."""
    details = entry.details
    return Attempt(
        day=day,
        phase=entry.phase,
        llm=entry.llm,
        outcome="claimed" if entry.grade == CLAIMED else "solved",
        speed_ms=entry.time,
        timestamp=entry.timestamp,
        measure=entry.measure,
        grade=entry.grade,
        id=id_of(day, entry),
        withdrawn=entry.is_withdrawn,
        attempt=details.attempt,
        tries=details.tries,
        wrong=details.wrong,
        tokens=details.tokens,
        cost_usd=details.cost_usd,
        agent=details.agent,
        version=details.version,
        model=details.model,
        language=details.language,
        host=details.host,
    )


def failed_attempt(end: AttemptEnd) -> Attempt:
    """Convert an attempt that has no record to a row of an export."""
    step, details = end.step, end.step.details or Details()
    is_abandoned = step.outcome != "failed"
    return Attempt(
        day=end.day,
        phase=step.phase,
        llm=step.llm,
        outcome="abandoned" if is_abandoned else "failed",
        speed_ms=None if is_abandoned else step.time,
        timestamp=step.timestamp,
        measure=step.measure,
        grade=end.started.grade,
        id=None,
        withdrawn=False,
        attempt=step.attempt,
        tries=end.wrong,
        wrong=end.wrong,
        tokens=step.tokens,
        cost_usd=step.cost_usd,
        agent=details.agent,
        version=details.version,
        model=details.model,
        language=details.language,
        host=details.host,
    )


def cut_page(total: int, limit: int, older: int | None) -> PageCut:
    """Choose the newest runs, or the newest of the `older` oldest ones."""
    start = 0 if older is None else max(0, total - older)
    size = min(limit, total - start)
    return PageCut(start, size, total - start - size)
