"""PostgreSQL usage: the counts of all replicas, by day, model and client.

A replica adds its counts every two seconds. Each batch has an id that is stored with it, so a batch whose
answer was lost is sent again and added once. While the database is down, counts stay in memory, bounded by
the number of keys; a replica that stops in that state leaves them in files (`usage_spool.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError, StorageError
from bridgehead.runtime.stores import migrations, postgres
from bridgehead.runtime.timing import Clock

from .usage import (
    COUNTED,
    DIMENSIONS,
    MAX_ROWS,
    WRITE_SECONDS,
    Key,
    Span,
    Usage,
    UsageCounts,
    UsageRow,
    utc_day,
)
from .usage_spool import UsageSpool

# `order by` the key: two replicas that add the same rows lock them in the same order, so they cannot
# deadlock.
_ADD = """
insert into mercury_usage (day, model, client, calls, errors, cache_hits,
    prompt_tokens, completion_tokens, total_tokens, cost_usd, unpriced)
select day, model, client, sum(calls), sum(errors), sum(cache_hits),
    sum(prompt_tokens), sum(completion_tokens), sum(total_tokens), sum(cost_usd), sum(unpriced)
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::bigint[], $8::bigint[], $9::bigint[], $10::float8[], $11::bigint[])
    as counted (day, model, client, calls, errors, cache_hits,
        prompt_tokens, completion_tokens, total_tokens, cost_usd, unpriced)
group by day, model, client order by day, model, client
on conflict (day, model, client) do update set
    calls = mercury_usage.calls + excluded.calls,
    errors = mercury_usage.errors + excluded.errors,
    cache_hits = mercury_usage.cache_hits + excluded.cache_hits,
    prompt_tokens = mercury_usage.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = mercury_usage.completion_tokens + excluded.completion_tokens,
    total_tokens = mercury_usage.total_tokens + excluded.total_tokens,
    cost_usd = mercury_usage.cost_usd + excluded.cost_usd,
    unpriced = mercury_usage.unpriced + excluded.unpriced"""
# An open send is uncertain once its time limit is over, by the database's own clock.
_HISTORY = """
with sends as (
    select day, model, client, sends, usd, reserved_until <= now() as is_over
    from mercury_sends where state = 'open' and day between $1 and $2 and client = coalesce($7, client)
), rows as (
    select *, 0 as uncertain_sends, 0 as uncertain_usd, 0 as reserved_usd
    from mercury_usage where day between $1 and $2 and client = coalesce($7, client)
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
# Returns nothing if the batch is already stored. Its row lock also makes a second copy wait for the first
# one.
_TAKE_BATCH = "insert into mercury_usage_batches (id) values ($1) on conflict do nothing returning id"

_log = logs.logger("mercury.usage")


def read_schema() -> migrations.Schema:
    """Read the tables of usage and budgets."""
    return migrations.read_schema("mercury", Path(__file__).parents[1] / "migrations")


async def read_history(
    connection: postgres.Connection, span: Span, by: Collection[str], client: str | None = None
) -> list[UsageRow]:
    """Read the counts of a span, grouped by some of `DIMENSIONS`; with `client`, only its own."""
    chosen = [name in by for name in DIMENSIONS]
    rows = await connection.fetch(_HISTORY, span.first, span.last, *chosen, MAX_ROWS, client)
    return [UsageRow(UsageCounts(*counts), day, model, client) for day, model, client, *counts in rows]


class PostgresUsage:
    """The counts in PostgreSQL."""

    def __init__(self, url: str, open_state: Callable[[], Path], clock: Clock, *, keep_days: int) -> None:
        self._url = url
        self._clock = clock
        self._keep_days = keep_days
        self._spool = UsageSpool(open_state)
        self._is_spool_read = False
        self._database: postgres.Database | None = None
        self._usage: Usage | None = None
        self._batch: tuple[UUID, dict[Key, UsageCounts]] | None = None
        """The batch being written; kept until the database has confirmed it."""
        # One writer at a time: `_batch` is sent again under the same id until it is confirmed.
        self._write_lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._pruned_on = ""

    def add_source(self, source: Usage, /) -> None:
        """Write the counts of `source` from now on."""
        self._usage = source

    def write_soon(self) -> None:
        """Write the counts, a little later."""
        if self._timer is None and self._writing is None:

            def begin() -> None:
                self._timer = None
                self._writing = asyncio.get_running_loop().create_task(self._write_quietly())

            self._timer = asyncio.get_running_loop().call_later(WRITE_SECONDS, begin)

    async def _write_quietly(self) -> None:
        try:
            await self.write()
        except BridgeError as failure:
            _log.warn("usage not written yet", reason=str(failure))
        finally:
            self._writing = None
        if self._batch is not None:
            self.write_soon()

    async def write(self) -> None:
        """Write the counts, those of an earlier run first; raises `BridgeError` if the database is down."""
        async with self._write_lock:
            if not self._is_spool_read:
                for number, counts in (await asyncio.to_thread(self._spool.read)).items():
                    try:
                        await self._store(number, counts)
                    except StorageError as refusal:  # the counts of this run must still be written
                        _log.warn("usage of an earlier run is refused", batch=number, reason=str(refusal))
                    else:
                        await asyncio.to_thread(self._spool.remove, number)
                self._is_spool_read = True
            while (batch := self._next_batch()) is not None:
                await self._store(*batch)
                self._batch = None

    def _next_batch(self) -> tuple[UUID, dict[Key, UsageCounts]] | None:
        if self._batch is None and self._usage is not None and (counts := self._usage.take_counts()):
            self._batch = uuid4(), counts
        return self._batch

    async def _store(self, number: UUID, counts: dict[Key, UsageCounts]) -> None:
        database = await self._open()

        async def add(connection: postgres.Connection) -> None:
            async with connection.transaction():
                if await connection.fetchval(_TAKE_BATCH, number) is None:
                    return  # it was added before, and only the answer was lost
                await self._prune(connection)
                values = [[getattr(row, name) for row in counts.values()] for name in COUNTED]
                await connection.execute(_ADD, *map(list, zip(*counts, strict=True)), *values)

        await database.writer.run(add)

    async def _prune(self, connection: postgres.Connection) -> None:
        """Once a day, delete days older than are kept."""
        today = utc_day(self._clock.now())
        if self._pruned_on == today:
            return
        first = (datetime.fromisoformat(today) - timedelta(days=self._keep_days)).date().isoformat()
        await connection.execute("delete from mercury_usage where day < $1", first)
        # A send is kept as long as the total of its month, whose uncertain part is read from the sends.
        await connection.execute("delete from mercury_sends where left(day, 7) < left($1, 7)", first)
        # A month sorts before its days, so a period is compared at its own length.
        await connection.execute("delete from mercury_budget where period < left($1, length(period))", first)
        # Long enough for a replica that ended while the database was down to start again: until then its
        # spool holds a batch that may be stored already. A replica writes at most 43,200 ids a day.
        await connection.execute("delete from mercury_usage_batches where at < now() - interval '14 days'")
        self._pruned_on = today

    async def history(self, span: Span, by: Collection[str], client: str | None = None) -> list[UsageRow]:
        """Return the counts of all replicas, including those that this one has not written yet."""
        await self.write()
        database = await self._open()
        return await database.reader.run(partial(read_history, span=span, by=by, client=client))

    async def _open(self) -> postgres.Database:
        if self._database is None:
            self._database = await postgres.acquire(self._url)
        return self._database

    async def close(self) -> None:
        """Write the remaining counts, to the spool if the database is down, and close."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self._write_quietly()
        # A failed write has set the timer again.
        if self._timer is not None:
            self._timer.cancel()
        while (batch := self._next_batch()) is not None:
            await asyncio.to_thread(self._spool.keep, *batch)
            self._batch = None
        if self._database is not None:
            await postgres.release(self._database)
