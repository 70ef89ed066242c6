"""Day cache: the runs of each day that this process has read, updated with newer rows only.

A day's revision grows with each write, under the row lock of `aoc_days`, so "newer than mine" is exact. A
day is read as a whole the first time and after a withdrawal; otherwise only later revisions are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..files.entries import CLAIMED, EXECUTION, SOLVING, Grade, Group
from ..files.figures import Runs
from ..files.names import canonical_name

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

# The only query when nothing has changed: one row per day shows whether more has to be read.
DAYS = """\
select day, revision, rewritten from aoc_days
where year = $1 and ($2::smallint is null or day = $2) order by day"""
# The server sorts and counts: a day of 300,000 rows arrives as a few arrays. `revision <= $3` leaves out what
# was committed after the day's revision was read, so that the next `_NEWER` does not count it twice.
_WHOLE = """\
select phase, llm, measure, grade, array_agg(time order by time) as times
from aoc_records where year = $1 and day = $2 and revision <= $3 and withdrawn is null
group by phase, llm, measure, grade"""
# Both bounds matter: rows above `$4` belong to the next read, which would otherwise count them again.
_NEWER = """\
select phase, llm, measure, grade, time from aoc_records
where year = $1 and day = $2 and revision > $3 and revision <= $4 and withdrawn is null"""


class DayRevision(NamedTuple):
    """The revision of a day in the database."""

    day: int
    revision: int
    rewritten: int
    """The last revision that changed existing records (a withdrawal or an import)."""


class CachedDay(Struct):
    """The runs of a day up to a revision."""

    revision: int
    groups: dict[Group, Runs]


class DayCache:
    """The runs of one year by day; with `is_shared` copied before a change, since other threads read them."""

    def __init__(self, year: int, *, is_shared: bool = False) -> None:
        self._year = year
        self._is_shared = is_shared
        self._days: dict[int, CachedDay] = {}

    async def read(self, connection: postgres.Connection, state: DayRevision) -> CachedDay:
        """Return the runs of a day up to the revision of `state`."""
        cached = self._days.get(state.day)
        # A revision below ours means that the table was replaced, by a restored backup for example.
        if cached is None or state.rewritten > cached.revision or state.revision < cached.revision:
            rows = await connection.fetch(_WHOLE, self._year, state.day, state.revision)
            groups: dict[Group, Runs] = {}
            for phase, llm, measure, grade, times in rows:
                group = group_of(llm, phase, measure, grade)
                runs = Runs(times, len(times) if group.grade == CLAIMED else 0)
                # Two spellings of one name are one group.
                groups[group] = runs if group not in groups else groups[group].merged(runs)
            cached = self._days[state.day] = CachedDay(state.revision, groups)
        elif state.revision > cached.revision:
            rows = await connection.fetch(_NEWER, self._year, state.day, cached.revision, state.revision)
            if self._is_shared:
                # Copy on write, only the groups that grow: a board may be reading them in another thread.
                cached.groups = dict(cached.groups)
                for group in {group_of(llm, phase, *kind) for phase, llm, *kind, _ in rows}:
                    if group in cached.groups:
                        cached.groups[group] = cached.groups[group].merged(Runs([]))
            for phase, llm, measure, grade, time in rows:
                group = group_of(llm, phase, measure, grade)
                cached.groups.setdefault(group, Runs([])).add(time, is_claimed=group.grade == CLAIMED)
            cached.revision = state.revision
        return cached


def group_of(llm: str, phase: int, measure: str | None, grade: Grade | None) -> Group:
    """Return the group of a row."""
    measured = EXECUTION if measure == EXECUTION else SOLVING
    return Group(canonical_name(llm) or llm, phase, measured, grade or CLAIMED)
