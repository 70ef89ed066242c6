"""Allotments in PostgreSQL: how much of each budget was ever handed to Redis, which spends nothing else.

One statement allots the portions of several totals, in the order of their keys, so that replicas never wait
for each other in a circle. It is committed when it returns. Where its answer is lost, the portions are too:
nobody asks again for the same ones, because somebody might have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.allotments import Allotment, Request
from bridgehead.runtime.stores.ledger import Counter

_PRUNE_SECONDS = 24 * 60 * 60
_ALLOT = """\
insert into mercury_allotments as held (period, client, begun, most, allotted)
select period, client, known, most, greatest(known, least(most, known + portion))
from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
    as asked (period, client, known, most, portion)
order by period, client
on conflict (period, client) do update set
    begun = greatest(held.allotted, excluded.begun),
    most = excluded.most,
    allotted = greatest(
        held.allotted,
        excluded.begun,
        least(excluded.most, greatest(held.allotted, excluded.begun) + excluded.allotted - excluded.begun)
    )
returning period, client, begun, allotted"""
_TAKE_BACK = """\
update mercury_allotments set allotted = allotted - $3 where period = $1 and client = $2 and allotted >= $3"""
_LOOK = """\
select period, client, allotted from mercury_allotments
where (period, client) in (select * from unnest($1::text[], $2::text[]))"""

# Longer than a month, and than Redis keeps a total; by the database's own clock, so that a replica with a
# wrong one makes nobody forget what was spent.
_PRUNE = """\
delete from mercury_allotments
where period < to_char(now() at time zone 'utc' - interval '62 days', 'YYYY-MM')"""


class AllotmentDatabase:
    """Where replicas have their portions from."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._database: postgres.Database | None = None
        self._prune_at = 0.0

    async def allot(self, requests: Sequence[Request]) -> list[Allotment]:
        """Allot a portion of each, or what is left of it; it is committed when this returns."""
        database = await self._open()
        await self._prune(database)
        periods, clients = _name([one.counter for one in requests])
        known, limits, portions = zip(*((one.known, one.limit, one.portion) for one in requests), strict=True)
        rows = await database.writer.run(
            lambda connection: connection.fetch(_ALLOT, periods, clients, known, limits, portions)
        )
        return [Allotment(Counter(period, client), begin, end) for period, client, begin, end in rows]

    async def take_back(self, amounts: Mapping[Counter, int]) -> None:
        """Take back what was allotted and is in no memory of Redis any more."""
        database = await self._open()
        rows = sorted((counter.period, counter.client, amount) for counter, amount in amounts.items())
        await database.writer.run(lambda connection: connection.executemany(_TAKE_BACK, rows))

    async def look(self, counters: Sequence[Counter]) -> dict[Counter, int]:
        """Return how much was allotted of each."""
        database = await self._open()
        rows = await database.writer.run(lambda connection: connection.fetch(_LOOK, *_name(counters)))
        return {Counter(period, client): allotted for period, client, allotted in rows}

    async def _prune(self, database: postgres.Database) -> None:
        if monotonic() < self._prune_at:
            return
        await database.writer.run(lambda connection: connection.execute(_PRUNE))
        self._prune_at = monotonic() + _PRUNE_SECONDS

    async def _open(self) -> postgres.Database:
        if self._database is None:
            self._database = await postgres.acquire(self._url)
        return self._database

    async def close(self) -> None:
        """Let go of the database."""
        database, self._database = self._database, None
        if database is not None:
            await postgres.release(database)


def _name(counters: Sequence[Counter]) -> tuple[list[str], list[str]]:
    return [one.period for one in counters], [one.client for one in counters]
