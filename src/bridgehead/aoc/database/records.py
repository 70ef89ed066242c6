"""Records in PostgreSQL: the runs of every day; only newer rows are read again. Blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ..files.entries import Entry
from ..files.names import Aliases, make_aliases
from ..files.records import DayRuns
from ..ranking.board import Skipped
from .day_cache import DAYS, DayCache, DayRevision

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

_ENTRIES = """\
select day, llm, phase, moment, time, measure, source, withdrawn, grade, details::text
from aoc_records
where year = $1 and day = any($2::smallint[]) order by day, id desc"""
_ATTEMPTS = """\
select details->>'attempt' as attempt from aoc_records
where year = $1 and day = $2 and details->>'attempt' is not null"""
# Polled by the watcher. A day's revision changes with every write, so no record is read.
_CHANGES = """\
select (select array_agg((day, revision) order by day) from aoc_days where year = $1) as days,
    (select (count(*), max(id)) from aoc_steps where year = $1) as steps"""


class DatabaseRecords:
    """The records of one event, open for reading."""

    def __init__(self, database: postgres.Database, year: int) -> None:
        self._database = database
        self._year = year
        self._days = DayCache(year, is_shared=True)

    def runs(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayRuns]:
        """Return the runs of the days that have any, or of one day.

        Nothing is ever skipped: rows are valid.
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
                day, llm, phase, moment, time, measure, source, withdrawn, grade, details = row
                entry = Entry(
                    llm,
                    phase,
                    moment,
                    time,
                    measure_key=measure,
                    source_key=source,
                    withdrawn=withdrawn,
                    grade_key=grade,
                    details_key=None if details is None else msgspec.json.decode(details),
                )
                entries.setdefault(day, []).append(entry)
            return entries

        return self._database.wait_for(self._database.reader.run(read))

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
