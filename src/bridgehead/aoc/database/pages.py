"""Pages: the runs of each day as far as this process has read them, brought up to date by what is newer.

A day's revision grows with each write, under a lock, so "newer than what I have" has an exact answer. A day
is read as a whole the first time, and after a record was taken back; else only what has come since is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..files.entries import EXECUTION, MEASURED, SOLVING, Group
from ..files.names import canonical_name
from ..ranking.figures import Runs

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

DAYS = """\
select day, revision, rewritten from aoc_days
where year = $1 and ($2::smallint is null or day = $2) order by day"""
_WHOLE = """\
select phase, llm, measure, array_agg(time order by time) as times,
    count(*) filter (where source = 'measured') as measured
from aoc_records where year = $1 and day = $2 and revision <= $3 and withdrawn is null
group by phase, llm, measure"""
_NEWER = """\
select phase, llm, measure, time, source from aoc_records
where year = $1 and day = $2 and revision > $3 and revision <= $4 and withdrawn is null"""


class DayState(NamedTuple):
    """How far a day has come in the database."""

    day: int
    revision: int
    rewritten: int
    """The last revision that changed what was there before."""


class Page(Struct):
    """The runs of a day up to a revision."""

    revision: int
    groups: dict[Group, Runs]


class Pages:
    """The runs of one event. Shared ones are read in other threads, and never change under their readers."""

    def __init__(self, year: int, *, is_shared: bool = False) -> None:
        self._year = year
        self._is_shared = is_shared
        self._pages: dict[int, Page] = {}

    async def read(self, connection: postgres.Connection, state: DayState) -> Page:
        """Return the runs of a day, up to the revision of a state that was read before."""
        page = self._pages.get(state.day)
        if page is None or state.rewritten > page.revision or state.revision < page.revision:
            page = self._pages[state.day] = await self._read_whole(connection, state)
        elif state.revision > page.revision:
            await self._read_on(connection, state, page)
        return page

    async def _read_whole(self, connection: postgres.Connection, state: DayState) -> Page:
        rows = await connection.fetch(_WHOLE, self._year, state.day, state.revision)
        groups: dict[Group, Runs] = {}
        for phase, llm, measure, times, measured in rows:
            group = group_of(llm, phase, measure)
            runs = Runs(times, len(times) - measured)
            groups[group] = runs if group not in groups else groups[group].merged(runs)
        return Page(state.revision, groups)

    async def _read_on(self, connection: postgres.Connection, state: DayState, page: Page) -> None:
        rows = await connection.fetch(_NEWER, self._year, state.day, page.revision, state.revision)
        if self._is_shared:
            page.groups = dict(page.groups)
            for group in {group_of(llm, phase, measure) for phase, llm, measure, *_ in rows}:
                if group in page.groups:
                    page.groups[group] = page.groups[group].merged(Runs([]))
        for phase, llm, measure, time, source in rows:
            runs = page.groups.setdefault(group_of(llm, phase, measure), Runs([]))
            runs.add(time, is_claimed=source != MEASURED)
        page.revision = state.revision


def group_of(llm: str, phase: int, measure: str | None) -> Group:
    """Return the runs that a row counts among."""
    return Group(canonical_name(llm) or llm, phase, EXECUTION if measure == EXECUTION else SOLVING)
