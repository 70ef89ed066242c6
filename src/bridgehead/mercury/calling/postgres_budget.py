"""PostgreSQL budget: the books of all replicas.

One conditional statement reserves and one books the ends, each a transaction of its own, so both work behind
a bouncer in transaction mode. Lock order: sends by id, then totals by key. So replicas never deadlock.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError, StorageError, TimedOut, Unavailable
from bridgehead.runtime.stores import postgres
from bridgehead.runtime.timing import Backoff

from .budget import Cap, OverBudget, ReleasedSends, Reservation, Spending
from .usage import Span

RECONNECT_SECONDS = 2.0
"""How long a paid call waits while the database is being reconnected."""
MAX_UNBOOKED = 10_000
"""Outcomes waiting to be booked; beyond that the oldest is dropped and its reservation becomes uncertain."""
_MAX_BATCH = 500
_RETRY_BACKOFF = Backoff(base=0.1, limit=5.0)
_CLOSE_SECONDS = 5.0
_PRUNE_SECONDS = 3600.0

# Creates missing totals: only an existing row can be locked.
_OPEN_TOTALS = """
insert into mercury_budget (period, payer, committed_usd)
select period, payer, 0 from unnest($1::text[], $2::text[]) as total (period, payer) order by 1, 2
on conflict do nothing"""

# `cap` has a row for each total, with its limit or null. All totals are locked, in the order of their keys;
# FOR UPDATE waits for a concurrent change and then sees the newest value. Only if the amount fits under every
# limit do the totals grow and is the send inserted. A statement that is sent again because its answer was
# lost finds its send and changes nothing. Returns each total as it was before.
_RESERVE = """
with cap as (
    select * from unnest($1::text[], $2::text[], $3::float8[]) as cap (period, payer, limit_usd)
), total as (
    select period, payer, committed_usd, limit_usd::numeric
    from mercury_budget join cap using (period, payer)
    order by period, payer
    for update of mercury_budget
), verdict as (
    select exists (select from mercury_sends where id = $4) as is_booked,
        bool_and(limit_usd is null or committed_usd + $5::float8::numeric <= limit_usd)
            and count(*) = cardinality($1::text[]) as fits
    from total
), taken as (
    update mercury_budget set committed_usd = mercury_budget.committed_usd + $5::float8::numeric
    from total, verdict
    where (mercury_budget.period, mercury_budget.payer) = (total.period, total.payer)
        and fits and not is_booked
), opened as (
    insert into mercury_sends (id, day, payer, model, client, sends, usd, state, reserved_until)
    select $4, $6, $7, $8, $9, 1, $5::float8::numeric, 'open', now() + make_interval(secs => $10)
    from verdict where fits and not is_booked
)
select period, payer, committed_usd::float8, fits or is_booked from total, verdict"""

# Books the outcomes of sends. The amount of an open send is committed; that of a send released by the payer
# is not. A settled one is skipped, so a repeated statement changes nothing. An uncertain one stays open, with
# its time limit moved to now.
_FINISH = """
with ended as (
    select id, outcome, usd::numeric as settled_usd
    from unnest($1::text[], $2::text[], $3::float8[]) as ended (id, outcome, usd)
), send as (
    select id, day, payer, model, client, outcome, settled_usd,
        case state when 'open' then usd else 0 end as before_usd,
        case outcome when 'settled' then settled_usd when 'released' then 0
            else case state when 'open' then usd else 0 end end as after_usd
    from mercury_sends join ended using (id)
    where state <> 'settled'
    order by id
    for update of mercury_sends
), closed as (
    update mercury_sends set
        state = case outcome when 'uncertain' then state else outcome end,
        usd = case outcome when 'settled' then send.settled_usd else usd end,
        reserved_until = least(reserved_until, now())
    from send where mercury_sends.id = send.id
), change as (
    select total.period, total.payer, sum(after_usd - before_usd) as usd
    from send cross join lateral (
        values (day, ''), (left(day, 7), ''), (day, send.payer), (left(day, 7), send.payer)
    ) as total (period, payer)
    group by total.period, total.payer having sum(after_usd - before_usd) <> 0
), locked as (
    select period, payer from mercury_budget join change using (period, payer)
    order by period, payer
    for update of mercury_budget
), counted as (
    update mercury_budget set committed_usd = greatest(0, committed_usd + change.usd)
    from change join locked using (period, payer)
    where (mercury_budget.period, mercury_budget.payer) = (change.period, change.payer)
)
insert into mercury_usage
    (day, model, client, calls, errors, cache_hits,
    prompt_tokens, completion_tokens, total_tokens, cost_usd, unpriced)
select day, model, client, 0, 0, 0, 0, 0, 0, sum(settled_usd), 0
from send where outcome = 'settled'
group by day, model, client order by day, model, client
on conflict (day, model, client) do update set cost_usd = mercury_usage.cost_usd + excluded.cost_usd"""

# Sends without a budget have no reservation; their uncertain money is one row per day, model and client. If
# the payer has released it, it starts again at zero.
_ADD_UNCERTAIN = """
insert into mercury_sends (id, day, payer, model, client, sends, usd, state, reserved_until)
select concat_ws(' ', day, model, client), day, '', model, client, count(*), sum(usd::numeric), 'open', now()
from unnest($1::text[], $2::text[], $3::text[], $4::float8[]) as send (day, model, client, usd)
group by day, model, client order by day, model, client
on conflict (id) do update set
    sends = case mercury_sends.state when 'open' then mercury_sends.sends else 0 end + excluded.sends,
    usd = case mercury_sends.state when 'open' then mercury_sends.usd else 0 end + excluded.usd,
    state = 'open'"""

# `$1 || '~'` sorts behind every day of a month: the same query serves a day and a month.
_SPENDING = """
select coalesce((select committed_usd from mercury_budget where period = $1 and payer = $2), 0)::float8,
    coalesce(sum(usd) filter (where reserved_until <= now()), 0)::float8,
    coalesce(sum(usd) filter (where reserved_until > now()), 0)::float8
from mercury_sends
where state = 'open' and day between $1 and $1 || '~' and payer <> '' and ($2 = '' or payer = $2)"""

# The same locks in the same order as above: sends first, then totals by their keys.
_RELEASE = """
with send as (
    select id, day, payer, model, client, sends, usd from mercury_sends
    where state = 'open' and reserved_until <= now() and day between $1 and $2
    order by id for update
), closed as (
    update mercury_sends set state = 'released' from send where mercury_sends.id = send.id
), change as (
    select total.period, total.payer, sum(usd) as usd
    from send cross join lateral (
        values (day, ''), (left(day, 7), ''), (day, send.payer), (left(day, 7), send.payer)
    ) as total (period, payer)
    where send.payer <> ''
    group by total.period, total.payer
), locked as (
    select period, payer from mercury_budget join change using (period, payer)
    order by period, payer
    for update of mercury_budget
), counted as (
    update mercury_budget set committed_usd = greatest(0, committed_usd - change.usd)
    from change join locked using (period, payer)
    where (mercury_budget.period, mercury_budget.payer) = (change.period, change.payer)
)
select day, model, client, sends, usd::float8 from send order by day, model, client"""

# A settled send is kept for an hour, in case its outcome is sent again.
_PRUNE = "delete from mercury_sends where state = 'settled' and reserved_until < now() - interval '1 hour'"

_log = logs.logger("mercury.budget")


class PostgresBudget:
    """The books in PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._database: postgres.Database | None = None
        self._known_totals: set[tuple[str, str]] = set()
        """Totals that this process has seen in the table."""
        self._ended: dict[str, Reservation] = {}
        """Sends whose outcome is not booked yet."""
        self._booking: asyncio.Task[None] | None = None
        self._pruned_at = float("-inf")

    async def reserve(self, reservation: Reservation, caps: Sequence[Cap]) -> list[Spending]:
        """Book the worst case under every cap or under none."""
        database, loop = await self._open(), asyncio.get_running_loop()
        until = loop.time() + RECONNECT_SECONDS
        while True:
            try:
                return await database.writer.run(partial(self._reserve, reservation=reservation, caps=caps))
            # The same id is sent again, so a reservation that was stored before counts once.
            except (Unavailable, TimedOut) as failure:
                if isinstance(failure, TimedOut) or loop.time() > until:
                    # The reservation may be stored although the answer was lost: release it, since nothing
                    # will be sent.
                    self.finish(replace(reservation, state="released", is_booked=True))
                    raise
            await asyncio.sleep(_RETRY_BACKOFF.base)

    async def _reserve(
        self, connection: postgres.Connection, reservation: Reservation, caps: Sequence[Cap]
    ) -> list[Spending]:
        day, payer, usd = reservation.day, reservation.payer, reservation.worst_usd or 0.0
        limits: dict[tuple[str, str], float | None] = {
            (period, whose): None for period in (day, day[:7]) for whose in ("", payer)
        }
        limits.update({cap.key(day): cap.limit for cap in caps})
        periods, payers = (list(column) for column in zip(*limits, strict=True))
        if not self._known_totals.issuperset(limits):
            await connection.execute(_OPEN_TOTALS, periods, payers)
            self._known_totals = {key for key in self._known_totals if key[0] in periods} | limits.keys()
        rows = await connection.fetch(
            _RESERVE,
            *(periods, payers, list(limits.values()), reservation.id, usd),
            *(day, payer, reservation.model, reservation.client, reservation.seconds),
        )
        if len(rows) < len(limits):  # rows were deleted since this process saw them
            self._known_totals.clear()
            raise StorageError("The books of the budget have changed.", next_step="Try again.")
        committed = {(period, whose): total for period, whose, total, _ in rows}
        if not rows[0][3]:
            raise OverBudget(max(caps, key=lambda cap: committed[cap.key(day)] - cap.limit))
        return [Spending(cap, round(committed[cap.key(day)] + usd, 12)) for cap in caps]

    async def spending(self, day: str, caps: Sequence[Cap]) -> list[Spending]:
        """Return the committed amount under each cap, including this process's unbooked outcomes."""
        if self._booking is not None:
            await asyncio.wait([self._booking], timeout=_CLOSE_SECONDS)
        database = await self._open()

        async def read(connection: postgres.Connection) -> list[Spending]:
            spendings = []
            for cap in caps:
                row = await connection.fetchrow(_SPENDING, *cap.key(day))
                spendings.append(Spending(cap, *(round(usd, 12) for usd in row or ())))
            return spendings

        return await database.writer.run(read)

    @property
    def problem(self) -> str:
        """Why nothing can be booked; empty as long as it can."""
        is_away = self._database is not None and bool(self._database.writer.problem)
        return "The database is unavailable." if is_away else ""

    async def check(self) -> None:
        """Do nothing: the connection reopens by itself."""

    # --- ends, booked in the background --------------------------------------------------------------------

    def finish(self, reservation: Reservation) -> None:
        """Book the outcome of a send in the background, retrying until the database accepts it."""
        self._ended[reservation.id or secrets.token_hex(8)] = reservation
        if len(self._ended) > MAX_UNBOOKED:
            del self._ended[next(iter(self._ended))]
        if self._booking is None:
            self._booking = asyncio.get_running_loop().create_task(self._book_ends())

    async def _book_ends(self) -> None:
        attempt = 0
        try:
            while batch := dict(islice(self._ended.items(), _MAX_BATCH)):
                try:
                    database = await self._open()
                    await database.writer.run(partial(self._finish, batch=list(batch.values())))
                except BridgeError as failure:
                    if attempt == 0:
                        _log.warn("the end of a send is not booked yet", reason=str(failure))
                    await asyncio.sleep(_RETRY_BACKOFF.delay(attempt, random.random))
                    attempt += 1
                    continue
                attempt = 0
                for key, reservation in batch.items():
                    if self._ended.get(key) is reservation:  # unless a later outcome was queued
                        del self._ended[key]
        finally:
            self._booking = None

    async def _finish(self, connection: postgres.Connection, batch: list[Reservation]) -> None:
        booked = [reservation for reservation in batch if reservation.is_booked]
        if booked:
            columns = [(send.id, send.state, send.settled_usd) for send in booked]
            await connection.execute(_FINISH, *(list(column) for column in zip(*columns, strict=True)))
        if len(booked) < len(batch):
            unbooked = [reservation for reservation in batch if not reservation.is_booked]
            rows = [(send.day, send.model, send.client, send.worst_usd or 0.0) for send in unbooked]
            await connection.execute(_ADD_UNCERTAIN, *(list(column) for column in zip(*rows, strict=True)))
        now = asyncio.get_running_loop().time()
        if now - self._pruned_at > _PRUNE_SECONDS:
            self._pruned_at = now
            await connection.execute(_PRUNE)

    async def _open(self) -> postgres.Database:
        if self._database is None:
            self._database = await postgres.acquire(self._url)
        return self._database

    async def close(self) -> None:
        """Book the queued outcomes, and close. Those that cannot be booked now become uncertain."""
        if self._booking is not None:
            booking = self._booking
            await asyncio.wait([booking], timeout=_CLOSE_SECONDS)
            booking.cancel()
        if self._database is not None:
            await postgres.release(self._database)


async def release_uncertain(connection: postgres.Connection, span: Span) -> list[ReleasedSends]:
    """Release all uncertain money of a span.

    A released send keeps its row: if its settlement still comes, it is charged in full.
    """
    return [ReleasedSends(*row) for row in await connection.fetch(_RELEASE, span.first, span.last)]
