"""Attempts in PostgreSQL: which model tried which puzzle, how it ended and how long it took. Blocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import msgspec

from bridgehead.runtime.errors import Unavailable

from ..files.attempts import AttemptEnd, AttemptStep, steps_to_store
from ..files.filters import Skipped
from .recorder import RETRY_PAUSE, SETTLE_SECONDS

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

# Ids grow in the order of the steps (`place`): readers sort by id, and the last step decides. A duplicate key
# is a step that was sent again because its acknowledgement was lost.
_APPEND = """\
insert into aoc_steps (year, day, attempt, step, key)
select $1, $2, attempt, step::jsonb, key
from unnest($3::text[], $4::text[], $5::uuid[]) with ordinality as g (attempt, step, key, place)
order by place on conflict (key) do nothing"""
# Held until the transaction ends: one answer at a time for an attempt, whichever replica gets it.
_LOCK = "select pg_advisory_xact_lock(hashtextextended('aoc attempt ' || $1, 0))"
_KEYED = "select key from aoc_steps where year = $1 and attempt = $2"
_FIND = "select day, step::text from aoc_steps where year = $1 and attempt = $2 order by id"
_STEPS = "select step::text from aoc_steps where year = $1 and day = $2 order by id"
# One row per attempt: its newest step, which says how it ended, its wrong answers, and its first step.
_ENDS = """\
select distinct on (attempt) day, step::text,
    count(*) filter (where step->>'outcome' = 'wrong') over (partition by attempt) as wrong,
    first_value(step::text) over (partition by attempt order by id) as started
from aoc_steps where year = $1 and ($2::smallint is null or day = $2) order by attempt, id desc"""
# Steps are only ever added. The count is needed too: ids are assigned before the commit, so a lower one can
# become visible after a higher one.
_IDENTITY = "select count(*), max(id) from aoc_steps where year = $1"

T = TypeVar("T")

_decode = msgspec.json.Decoder(AttemptStep).decode


class DatabaseAttempts:
    """The attempts of one year."""

    def __init__(self, database: postgres.Database, year: int) -> None:
        self._database = database
        self._year = year

    def append(self, day: int, steps: list[AttemptStep]) -> None:
        """Store steps; they are committed when this returns."""
        values = (
            [step.attempt for step in steps],
            [msgspec.json.encode(step).decode() for step in steps],
            [uuid4() for _ in steps],
        )

        async def write(connection: postgres.Connection) -> None:
            await connection.execute(_APPEND, self._year, day, *values)

        self._database.wait_for(self._write_once(write))

    def advance(self, day: int, step: AttemptStep) -> list[AttemptStep]:
        """Store a step unless the attempt has ended; return the attempt's steps."""
        keys = [uuid4(), uuid4()]

        async def write(connection: postgres.Connection) -> list[AttemptStep]:
            async with connection.transaction():
                await connection.execute(_LOCK, step.attempt)
                rows = await connection.fetch(_FIND, self._year, step.attempt)
                known = [_decode(row["step"]) for row in rows]
                # A step that was sent again after a lost connection may be stored already.
                stored = {row["key"] for row in await connection.fetch(_KEYED, self._year, step.attempt)}
                new = [] if keys[0] in stored else steps_to_store(known, step)
                texts = [msgspec.json.encode(step).decode() for step in new]
                names = [step.attempt] * len(new)
                await connection.execute(_APPEND, self._year, day, names, texts, keys[: len(new)])
                return known + new

        return self._database.wait_for(self._write_once(write))

    async def _write_once(self, write: Callable[[postgres.Connection], Awaitable[T]]) -> T:
        """Retry while the outcome of the commit is unknown, as for records; each key is stored once."""
        deadline, is_unsure = time.monotonic() + SETTLE_SECONDS, False
        while True:
            try:
                return await self._database.writer.run(write)
            except Unavailable as failure:
                is_unsure = is_unsure or failure.code == "connection_lost"
                if not is_unsure or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(RETRY_PAUSE)

    def steps(self, day: int) -> list[AttemptStep]:
        """Return the steps of a day, the oldest first."""
        return [_decode(row["step"]) for row in self._fetch(_STEPS, self._year, day)]

    def find(self, attempt: str) -> tuple[int, list[AttemptStep]]:
        """Return the day and the steps of one attempt; no steps if it does not exist."""
        rows = self._fetch(_FIND, self._year, attempt)
        return (rows[0]["day"] if rows else 0), [_decode(row["step"]) for row in rows]

    def identity(self) -> object:
        """Return a value that changes when any attempt does."""
        return tuple(map(tuple, self._fetch(_IDENTITY, self._year)))

    def ends(self, day: int | None, skipped: list[Skipped]) -> list[AttemptEnd]:
        """Return every attempt of a day, or of all days, with its last step."""
        rows = self._fetch(_ENDS, self._year, day)
        return [
            AttemptEnd(row["day"], _decode(row["step"]), row["wrong"], _decode(row["started"]))
            for row in rows
        ]

    def _fetch(self, sql: str, *values: object) -> list[postgres.Record]:
        async def read(connection: postgres.Connection) -> list[postgres.Record]:
            return await connection.fetch(sql, *values)

        return self._database.wait_for(self._database.reader.run(read))
