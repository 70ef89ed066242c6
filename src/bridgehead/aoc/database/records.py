"""Records in PostgreSQL: the runs of every day; only newer rows are read again. Blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from ..files.entries import CLAIMED, EXECUTION, SOLVING, Entry, Group
from ..files.filters import RunFilter, Skipped
from ..files.history import PageCut
from ..files.names import Aliases, make_aliases
from ..files.records import DayCounts, DayRuns
from .day_cache import DAYS, DayCache, DayRevision

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

_ENTRIES = """\
select day, llm, phase, moment, time, measure, source, withdrawn, grade, details::text
from aoc_records
where year = $1 and day = any($2::smallint[]) order by day, id desc"""
# Revisions only grow and a row keeps its own, so only rows of later revisions have to be counted.
_COUNTS = """\
select r.day, llm, phase, measure, grade, count(*)
from unnest($2::smallint[], $3::bigint[], $4::bigint[]) as d (day, after, revision)
join aoc_records r on r.year = $1 and r.day = d.day and r.revision > d.after and r.revision <= d.revision
group by r.day, llm, phase, measure, grade"""
# Takes the first runs of each day in index order (`aoc_records_moment`), picks the page from them, and reads
# only its rows in full. `revision <= d.revision`: a run recorded after the count would shift the page.
_PAGE = """\
with page as materialized (
    select r.* from unnest($2::smallint[], $3::bigint[]) as d (day, revision) cross join lateral (
        select day, id, coalesce(moment_utc, left(moment, -1)) collate "C" as utc
        from aoc_records
        where year = $1 and day = d.day and revision <= d.revision
            and ($4::smallint is null or phase = $4)
            and ($5::text is null or coalesce(measure, 'solving') = $5)
            and ($6::text is null or coalesce(grade, 'claimed') = $6)
            and ($7::text[] is null or llm = any($7)) {after}
        order by coalesce(moment_utc, left(moment, -1)) collate "C" {desc}, id {desc}
        limit $8::bigint + $9::bigint
    ) as r
    order by utc {desc}, r.day {asc}, r.id {desc} offset $8 limit $9
)
select page.day, id, utc, llm, phase, moment, time, measure, source, withdrawn, grade, details::text
from page join aoc_records using (id) order by utc desc, page.day, id desc"""
_NEWEST_FIRST = _PAGE.format(desc="desc", asc="", after="")
_OLDEST_FIRST = _PAGE.format(desc="", asc="desc", after="")
# Continues after the last run of the previous page, so no rows are read just to be skipped.
_NEXT_PAGE = _PAGE.format(
    desc="desc",
    asc="",
    after="""and coalesce(moment_utc, left(moment, -1)) collate "C" <= $10::text
            and (coalesce(moment_utc, left(moment, -1)) collate "C" < $10
                or day > $11::smallint or (day = $11 and id < $12::bigint))""",
)
_ATTEMPTS = """\
select details->>'attempt' as attempt from aoc_records
where year = $1 and day = $2 and details->>'attempt' is not null"""
# Polled by the watcher. A day's revision changes with every write, so no record is read.
_CHANGES = """\
select (select array_agg((day, revision) order by day) from aoc_days where year = $1) as days,
    (select (count(*), max(id)) from aoc_steps where year = $1) as steps"""

MAX_LAST_RUNS = 1000
"""Pages whose last run is remembered, for `_NEXT_PAGE`."""


class DatabaseRecords:
    """The records of one event, open for reading."""

    def __init__(self, database: postgres.Database, year: int) -> None:
        self._database = database
        self._year = year
        self._days = DayCache(year, is_shared=True)
        self._counts: dict[int, DayCounts] = {}
        self._last_runs: dict[tuple[object, ...], tuple[str, int, int]] = {}
        """Moment, day and id of the last run of a page, by the number of older runs."""

    def runs(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayRuns]:
        """Return the runs of the days that have any, or of one day.

        `skipped` stays empty: rows are always valid.
        """

        async def read(connection: postgres.Connection) -> dict[int, DayRuns]:
            states = [DayRevision(*row) for row in await connection.fetch(DAYS, self._year, day)]
            runs = {}
            for state in states:
                cached = await self._days.read(connection, state)
                runs[state.day] = DayRuns(cached.groups, cached.revision)
            return runs

        return self._database.wait_for(self._database.reader.run(read))

    def entries(self, days: Iterable[int], skipped: list[Skipped] | None = None) -> dict[int, list[Entry]]:
        """Return the entries of some days, newest first."""

        async def read(connection: postgres.Connection) -> dict[int, list[Entry]]:
            entries: dict[int, list[Entry]] = {}
            for row in await connection.fetch(_ENTRIES, self._year, list(days)):
                entries.setdefault(row["day"], []).append(_entry(row))
            return entries

        return self._database.wait_for(self._database.reader.run(read))

    def run_counts(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayCounts]:
        """Count the runs of each day that has any, or of one day. Nothing is ever skipped."""

        async def read(connection: postgres.Connection) -> dict[int, DayCounts]:
            rows = await connection.fetch(DAYS, self._year, day)
            states = {row[0]: DayRevision(*row) for row in rows}
            known: dict[int, DayCounts] = {}
            for number, state in states.items():
                cached = self._counts.get(number)
                # A revision below ours means that the table was replaced, by a restored backup for example.
                is_usable = cached is not None and cached.revision <= state.revision
                known[number] = cached if cached and is_usable else DayCounts({}, 0)
            behind = [number for number, state in states.items() if known[number].revision < state.revision]
            if behind:
                after = [known[number].revision for number in behind]
                upto = [states[number].revision for number in behind]
                # Copied, never changed: another thread may be reading them.
                newer = {number: dict(known[number].counts) for number in behind}
                for row in await connection.fetch(_COUNTS, self._year, behind, after, upto):
                    number, llm, phase, measure, grade, count = row
                    measured = EXECUTION if measure == EXECUTION else SOLVING
                    group = Group(llm, phase, measured, grade or CLAIMED)
                    newer[number][group] = newer[number].get(group, 0) + count
                for number in behind:
                    _, revision, rewritten = states[number]
                    known[number] = self._counts[number] = DayCounts(newer[number], revision, rewritten)
            return known

        return self._database.wait_for(self._database.reader.run(read))

    def newest_runs(
        self, days: Mapping[int, DayCounts], run_filter: RunFilter, cut: PageCut
    ) -> list[tuple[int, Entry]]:
        """Return the runs of a page that pass a filter, newest first, with their days."""
        values = [
            self._year,
            list(days),
            [day_counts.revision for day_counts in days.values()],
            run_filter.phase,
            run_filter.measure,
            run_filter.grade,
            None if run_filter.llms is None else list(run_filter.llms),
        ]
        # Positions are counted from the oldest run: they hold until a run is withdrawn or older runs are
        # imported.
        rewritten = tuple((day, day_counts.rewritten) for day, day_counts in days.items())
        last = self._last_runs.get((run_filter, rewritten, cut.older + cut.size))
        more: tuple[object, ...]
        if last is not None:
            sql, more = _NEXT_PAGE, (0, cut.size, *last)
        elif cut.newer <= cut.older:
            sql, more = _NEWEST_FIRST, (cut.newer, cut.size)
        else:  # PostgreSQL reads the rows that OFFSET skips, so begin at the nearer end
            sql, more = _OLDEST_FIRST, (cut.older, cut.size)

        async def read(connection: postgres.Connection) -> list[postgres.Record]:
            return await connection.fetch(sql, *values, *more)

        rows = self._database.wait_for(self._database.reader.run(read))
        if rows:
            if len(self._last_runs) >= MAX_LAST_RUNS:
                self._last_runs.clear()
            oldest = rows[-1]
            self._last_runs[run_filter, rewritten, cut.older] = oldest["utc"], oldest["day"], oldest["id"]
        return [(row["day"], _entry(row)) for row in rows]

    def attempts(self, day: int) -> set[str]:
        """Return the attempts that have a record on a day, withdrawn or not."""

        async def read(connection: postgres.Connection) -> set[str]:
            return {row["attempt"] for row in await connection.fetch(_ATTEMPTS, self._year, day)}

        return self._database.wait_for(self._database.reader.run(read))

    def days(self) -> list[int]:
        """List the days that have records."""

        async def read(connection: postgres.Connection) -> list[int]:
            return [row["day"] for row in await connection.fetch(DAYS, self._year, None)]

        return self._database.wait_for(self._database.reader.run(read))

    def aliases(self) -> Aliases:
        """Read the aliases."""

        async def read(connection: postgres.Connection) -> Aliases:
            rows = await connection.fetch("select name, llm from aoc_aliases order by name")
            return make_aliases({row["name"]: row["llm"] for row in rows}, tuple(map(tuple, rows)))

        return self._database.wait_for(self._database.reader.run(read))

    async def changes(self) -> object:
        """Return a value that changes with anything that a board is made of."""

        async def read(connection: postgres.Connection) -> object:
            return tuple(map(repr, await connection.fetch(_CHANGES, self._year)))

        return await self._database.reader.run(read)


def _entry(row: postgres.Record) -> Entry:
    details = row["details"]
    return Entry(
        row["llm"],
        row["phase"],
        row["moment"],
        row["time"],
        measure_key=row["measure"],
        source_key=row["source"],
        withdrawn=row["withdrawn"],
        grade_key=row["grade"],
        details_key=None if details is None else msgspec.json.decode(details),
    )
