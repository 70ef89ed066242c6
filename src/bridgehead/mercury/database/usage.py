"""Usage in PostgreSQL: the counts of all replicas, by day, model and client.

A replica adds what it has gathered every two seconds, in one statement and in the order of the keys, so that
replicas never wait for each other in a circle. Each batch has an id that is stored with it: one whose
connection died between commit and answer is sent again and added once. While the database is gone, counts
stay in memory, which their keys bound; a replica that ends then leaves them in files (`leftovers`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError, StorageError
from bridgehead.runtime.stores import migrations, postgres
from bridgehead.runtime.timing import Clock

from ..calling.usage import COUNTED, DIMENSIONS, MAX_ROWS, Key, Span, UsageCounts, UsageRow, utc_day
from ..calling.usage_store import WRITE_SECONDS
from .leftovers import Leftovers

if TYPE_CHECKING:
    from ..calling.usage import Usage

_ADD = f"""\
insert into mercury_usage (day, model, client, {", ".join(COUNTED)})
select day, model, client, {", ".join(f"sum({name})" for name in COUNTED)}
from unnest($1::text[], $2::text[], $3::text[], {
    ", ".join(
        f"${place}::{'float8' if name == 'cost_usd' else 'bigint'}[]" for place, name in enumerate(COUNTED, 4)
    )
}) as given (day, model, client, {", ".join(COUNTED)})
group by day, model, client order by day, model, client
on conflict (day, model, client) do update set
{", ".join(f"{name} = mercury_usage.{name} + excluded.{name}" for name in COUNTED)}"""  # noqa: S608 - our names
# An open send is uncertain once its time is over, by the database's own clock.
_HISTORY = """\
with sends as (
    select day, model, client, sends, usd, reserved_until <= now() as is_over
    from mercury_sends where state = 'open' and day between $1 and $2
), rows as (
    select *, 0 as uncertain_sends, 0 as uncertain_usd, 0 as reserved_usd
    from mercury_usage where day between $1 and $2
    union all
    select day, model, client, 0, 0, 0, 0, 0, 0, 0, 0,
        case when is_over then sends else 0 end, case when is_over then usd else 0 end,
        case when is_over then 0 else usd end
    from sends
)
select case when $3 then day else '' end as at_day, case when $4 then model else '' end as of_model,
    case when $5 then client else '' end as by_client,
    sum(calls)::bigint, sum(errors)::bigint, sum(cache_hits)::bigint, sum(prompt_tokens)::bigint,
    sum(completion_tokens)::bigint, sum(total_tokens)::bigint, round(sum(cost_usd), 12)::float8,
    sum(unpriced)::bigint, sum(uncertain_sends)::bigint, round(sum(uncertain_usd), 12)::float8,
    round(sum(reserved_usd), 12)::float8
from rows group by 1, 2, 3 order by 1, 2, 3 limit $6"""
_TAKE_BATCH = "insert into mercury_usage_batches (id) values ($1) on conflict do nothing returning id"

_log = logs.logger("mercury.usage")


def read_schema() -> migrations.Schema:
    """Read the tables that usage is in where there is a database."""
    return migrations.read_schema("mercury", Path(__file__).parent / "migrations")


async def read_history(connection: postgres.Connection, span: Span, by: Collection[str]) -> list[UsageRow]:
    """Read the counts of some days, told apart by some of `DIMENSIONS`."""
    chosen = [name in by for name in DIMENSIONS]
    rows = await connection.fetch(_HISTORY, span.first, span.last, *chosen, MAX_ROWS)
    return [UsageRow(UsageCounts(*counts), day, model, client) for day, model, client, *counts in rows]


class UsageDatabase:
    """Where `Usage` keeps its counts, shared by all replicas."""

    def __init__(self, url: str, open_state: Callable[[], Path], clock: Clock, *, keep_days: int) -> None:
        self._url = url
        self._clock = clock
        self._keep_days = keep_days
        self._leftovers = Leftovers(open_state)
        self._has_read_leftovers = False
        self._database: postgres.Database | None = None
        self._usage: Usage | None = None
        self._unsure: tuple[UUID, dict[Key, UsageCounts]] | None = None
        """A batch of which nobody knows yet whether it was added."""
        self._turn = asyncio.Lock()
        """Held while batches are written: two at once would take each other's for added."""
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._pruned_on = ""

    def add_source(self, source: Usage, /) -> None:
        """Write what is counted there."""
        self._usage = source

    def write_soon(self) -> None:
        """Write what was counted, a little later."""
        if self._timer is None and self._writing is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_SECONDS, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._writing = asyncio.get_running_loop().create_task(self._write_quietly())

    async def _write_quietly(self) -> None:
        try:
            await self.write()
        except BridgeError as failure:
            _log.warn("usage not written yet", reason=str(failure))
        finally:
            self._writing = None
        if self._unsure is not None:
            self.write_soon()

    async def write(self) -> None:
        """Write what was counted; raises `BridgeError` where it has to wait."""
        async with self._turn:
            if not self._has_read_leftovers:
                await self._write_leftovers()
            while (batch := self._take_batch()) is not None:
                await self._store(*batch)
                self._unsure = None

    def _take_batch(self) -> tuple[UUID, dict[Key, UsageCounts]] | None:
        if self._unsure is None and self._usage is not None and (counts := self._usage.take_counts()):
            self._unsure = uuid4(), counts
        return self._unsure

    async def _write_leftovers(self) -> None:
        """Write what an earlier run could not."""
        for number, counts in (await asyncio.to_thread(self._leftovers.read)).items():
            try:
                await self._store(number, counts)
            except StorageError as refusal:  # what this run counts is not to wait for it
                _log.warn("usage of an earlier run is refused", batch=number, reason=str(refusal))
            else:
                await asyncio.to_thread(self._leftovers.remove, number)
        self._has_read_leftovers = True

    async def _store(self, number: UUID, counts: dict[Key, UsageCounts]) -> None:
        database = await self._open()
        await database.writer.run(partial(self._add, number=number, counts=counts))

    async def _add(
        self, connection: postgres.Connection, number: UUID, counts: dict[Key, UsageCounts]
    ) -> None:
        async with connection.transaction():
            if await connection.fetchval(_TAKE_BATCH, number) is None:
                return
            await self._prune(connection)
            values = [[getattr(one, name) for one in counts.values()] for name in COUNTED]
            await connection.execute(_ADD, *map(list, zip(*counts, strict=True)), *values)

    async def _prune(self, connection: postgres.Connection) -> None:
        today = utc_day(self._clock.now())
        if self._pruned_on == today:
            return
        first = (datetime.fromisoformat(today) - timedelta(days=self._keep_days)).date().isoformat()
        await connection.execute("delete from mercury_usage where day < $1", first)
        # A send stays as long as the total of its month: what of that is uncertain has to be known.
        await connection.execute("delete from mercury_sends where left(day, 7) < left($1, 7)", first)
        await connection.execute("delete from mercury_budget where period < left($1, length(period))", first)
        await connection.execute("delete from mercury_usage_batches where at < now() - interval '1 day'")
        self._pruned_on = today

    async def history(self, span: Span, by: Collection[str]) -> list[UsageRow]:
        """Return the counts of some days, of all replicas, with what this one has just counted."""
        await self.write()
        database = await self._open()
        return await database.reader.run(lambda connection: read_history(connection, span, by))

    async def _open(self) -> postgres.Database:
        if self._database is None:
            self._database = await postgres.acquire(self._url)
        return self._database

    async def close(self) -> None:
        """Write what is left, to files where the database is gone, and let go."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self._write_quietly()
        if self._timer is not None:
            self._timer.cancel()
        while (batch := self._take_batch()) is not None:  # the database is gone
            await asyncio.to_thread(self._leftovers.keep, *batch)
            self._unsure = None
        if self._database is not None:
            await postgres.release(self._database)
