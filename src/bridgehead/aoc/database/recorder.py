"""Recorder: store speed records of many concurrent calls, and answer each once it is committed.

All waiting records are stored by one statement, whatever their days; while it runs, the next batch gathers.
(A second connection halves the throughput: a day has one lock, and few large statements cost less.) Each
record has the key of its request, and a key is stored once. So a statement whose connection died between
commit and answer can be sent again, and so can a request, to any replica.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain
from os import urandom
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from bridgehead.runtime.errors import TimedOut, Unavailable
from bridgehead.runtime.timing import Clock

from ..files.day_file import Recorded, choose_record, describe_run, take_run
from ..files.entries import CLAIMED, Entry, NewEntry, Wanted, format_timestamp
from ..files.recorder import NewRun, answer_all, check_same, key_of_attempt
from .day_cache import DayCache, DayRevision

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

MAX_BATCH = 2000
"""Records per statement; more only make the first one wait longer."""
SETTLE_SECONDS = 2.0
"""How long to resend a batch whose connection died before its callers get an error."""
RETRY_PAUSE = 0.02
"""Seconds between two attempts to send such a batch."""
UNANSWERED = "unanswered"
"""Error code of a statement that was sent and may have been carried out."""
_LOST = "The connection to the database was lost while the record was being stored."

# `locked` takes the row lock of each day, in the order of days so that two batches cannot deadlock, and
# raises its revision. `stored` skips keys that are there already; its count tells whether there were any.
# Arrays come as texts (`$2::text::smallint[]`), which `_send` writes faster than the driver does.
_STORE_ONCE = """\
with batch as (
    select * from unnest(
        $2::text::smallint[], $3::text::smallint[], $4::text::text[], $5::text::bigint[],
        $6::text::text[], $7::text::text[], $8::text::text[], $9::text::text[], $10::text::uuid[]
    ) with ordinality as g (day, phase, llm, time, moment, measure, grade, details, key, place)
), locked as (
    insert into aoc_days (year, day, revision)
    select $1::smallint, day, 1 from batch group by day order by day
    on conflict (year, day) do update set revision = aoc_days.revision + 1
    returning day, revision, rewritten
), stored as (
    insert into aoc_records (year, day, phase, llm, time, moment, measure, grade, details, revision, key)
    select $1::smallint, day, phase, llm, time, moment, measure, grade, details::jsonb, revision, key
    from batch join locked using (day) order by place
    on conflict (key) do nothing
    returning key
)
select day, revision, rewritten, (select count(*) from stored) as stored from locked"""
_STORE = _STORE_ONCE.replace("    on conflict (key) do nothing\n    returning key\n", "").replace(
    ", (select count(*) from stored) as stored", ""
)
"""For keys made in this process: they cannot be stored yet, so there is no conflict to check."""
# The records stored under the keys of a batch, to answer a repeated request.
_KNOWN = """\
select key, day, phase, llm, time, moment, measure, grade, revision from aoc_records
where key = any($1::uuid[])"""
# Newest first: of two equal records the later one is withdrawn. The digest is that of `entries.id_of`,
# computed here so that a whole day need not be transferred.
_CANDIDATES = """\
select id, llm, phase, moment, time, measure, withdrawn, details::text from aoc_records
where year = $1 and day = $2 and (withdrawn is not null) = $6
    and ($3::smallint is null or phase = $3) and ($4::text is null or moment = $4)
    and ($5::text is null or $5 = left(encode(sha256(convert_to(concat_ws(E'\\n',
        day, phase, time, coalesce(measure, 'solving'), moment, llm), 'UTF8')), 'hex'), 12))
order by id desc"""
# `rewritten` makes readers read the whole day again: records that they have cached may have changed.
_REWRITE = """\
insert into aoc_days (year, day, revision, rewritten) values ($1, $2, 1, 1)
on conflict (year, day) do update set revision = aoc_days.revision + 1, rewritten = aoc_days.revision + 1"""
# Runs under the day's row lock, which `_REWRITE` takes, so the candidate cannot change meanwhile.
_WITHDRAW = "update aoc_records set withdrawn = $2 where id = $1"


class _Waiting(NamedTuple):
    day: int
    entry: NewEntry
    key: UUID
    is_new: bool
    """Whether this process has just made the key, so that it cannot be in the database yet."""
    client: int | None
    answer: asyncio.Future[Recorded]


class DatabaseRecorder:
    """The records of one event, open for writing."""

    def __init__(self, database: postgres.Database, year: int, clock: Clock) -> None:
        self._database = database
        self._year = year
        self._clock = clock
        self._days = DayCache(year)
        self._waiting: list[_Waiting] = []
        self._under_way: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        # asyncpg's UUID is made in a fraction of the time of the standard library's.
        from asyncpg.pgproto import pgproto

        self._make_key: Callable[[bytes], UUID] = pgproto.UUID

    # --- recording -----------------------------------------------------------------------------------------

    async def record(self, run: NewRun, client: int | None = None, key: UUID | None = None) -> Recorded:
        """Record a time; it is committed when this returns. Raises `StorageError` or `Unavailable`."""
        recorded = await self._add(run, client, key)
        return recorded if key is None else check_same(run, recorded)

    def _add(self, run: NewRun, client: int | None, key: UUID | None = None) -> asyncio.Future[Recorded]:
        loop = asyncio.get_running_loop()
        now = self._clock.now()
        if run.details is not None and run.details.attempt:
            key = key_of_attempt(run.details.attempt)
        # Time first (as in UUIDv7), so that the index on keys grows at its end.
        own_key = key or self._make_key(int(now * 1000).to_bytes(6, "big") + urandom(10))
        waiting = _Waiting(run.day, run.at(now), own_key, key is None, client, loop.create_future())
        self._waiting.append(waiting)
        # The task starts with the next turn of the loop, so all records of this turn share its statement.
        if self._writing is None:
            self._writing = loop.create_task(self._write())
        return waiting.answer

    async def settled(self, client: int) -> None:
        """Wait until the client's records are committed: the contract handles its requests in order."""
        # Searched on demand, which is rare; keeping a set per client costs 1.8 µs for each record.
        known = chain(self._waiting, self._under_way)
        answers = [
            waiting.answer for waiting in known if waiting.client == client and not waiting.answer.done()
        ]
        if answers:
            await asyncio.wait(answers)

    def record_now(self, runs: list[NewRun]) -> list[Recorded]:
        """Record times from outside the event loop. Blocks."""

        async def record_all() -> list[Recorded]:
            return list(await asyncio.gather(*(self._add(run, None) for run in runs)))

        return self._database.wait_for(record_all())

    async def _write(self) -> None:
        try:
            while self._waiting:
                answerable = [waiting for waiting in self._waiting if not waiting.answer.cancelled()]
                self._under_way, self._waiting = answerable[:MAX_BATCH], answerable[MAX_BATCH:]
                if not self._under_way:
                    continue
                answers = [waiting.answer for waiting in self._under_way]
                await answer_all(answers, self._store(self._under_way))
        finally:
            self._under_way = []
            self._writing = None

    async def _store(self, batch: list[_Waiting]) -> list[Recorded]:
        """Store a batch; send it again while it is unknown whether it was committed."""
        deadline = self._clock.monotonic() + SETTLE_SECONDS
        is_new, is_unsure = all(waiting.is_new for waiting in batch), False
        while True:
            try:
                return await self._database.writer.run(
                    lambda connection: self._send(connection, batch, is_new=is_new)  # noqa: B023
                )
            except TimedOut as failure:
                if failure.code == UNANSWERED:
                    raise _unsure(failure.message) from failure
                raise
            except Unavailable as failure:
                # Once a connection was lost in the middle, a later refusal does not prove that the first send
                # failed.
                is_unsure = is_unsure or failure.code == "connection_lost"
                if not is_unsure:
                    raise
                if self._clock.monotonic() > deadline:
                    raise _unsure(_LOST) from failure
                # From now on the keys may be stored: use the statement that skips those.
                is_new = False
                await asyncio.sleep(RETRY_PAUSE)

    async def _send(
        self, connection: postgres.Connection, batch: list[_Waiting], *, is_new: bool
    ) -> list[Recorded]:
        entries = [waiting.entry for waiting in batch]
        locked = await connection.fetch(
            _STORE if is_new else _STORE_ONCE,
            self._year,
            # Arrays as text take 0.35 µs an element; the driver's own encoding takes 0.47 µs.
            _write_array(str(waiting.day) for waiting in batch),
            _write_array(str(entry.phase) for entry in entries),
            _write_array(_quote(entry.llm) for entry in entries),
            _write_array(str(entry.time) for entry in entries),
            _write_array(_quote(entry.timestamp) for entry in entries),
            _write_array(entry.measure or "NULL" for entry in entries),
            _write_array("NULL" if entry.grade == CLAIMED else entry.grade for entry in entries),
            _write_array(
                "NULL" if entry.details is None else _quote(msgspec.json.encode(entry.details).decode())
                for entry in entries
            ),
            _write_array(waiting.key.hex for waiting in batch),
        )
        states = {row[0]: DayRevision(*row[:3]) for row in locked}
        known: dict[UUID, NewEntry] = {}
        if not is_new and locked[0]["stored"] < len(batch):
            # Some keys were stored before this batch, by an earlier attempt or another replica.
            rows = await connection.fetch(_KNOWN, [waiting.key for waiting in batch])
            # Records with the day's new revision come from this batch and are no repeats.
            known = {
                key: NewEntry(llm, phase, time, moment, measure, grade or CLAIMED)
                for key, day, phase, llm, time, moment, measure, grade, revision in rows
                if day not in states or revision < states[day].revision
            }
        answers: list[Recorded] = []
        days = {}
        for day, state in states.items():
            # Bring the cache up to the revision before this batch. If no other replica wrote in between, it
            # is there already and nothing is read.
            days[day] = await self._days.read(connection, state._replace(revision=state.revision - 1))
        for waiting in batch:
            groups, stored = days[waiting.day].groups, known.get(waiting.key)
            if stored is not None:
                answers.append(describe_run(groups, stored))
            else:
                known[waiting.key] = waiting.entry  # the same request may be in this batch twice
                answers.append(take_run(groups, waiting.entry))
        for day, cached in days.items():
            cached.revision = states[day].revision
        return answers

    # --- withdrawing ---------------------------------------------------------------------------------------

    async def withdraw(self, day: int, wanted: Wanted) -> Entry:
        """Withdraw a record, or count it again: it stays either way."""
        mark_text = None if wanted.is_withdrawn else format_timestamp(self._clock.now())

        async def mark(connection: postgres.Connection) -> Entry:
            async with connection.transaction():
                # First, because it takes the day's row lock, which every writer takes before it touches
                # records.
                await connection.execute(_REWRITE, self._year, day)
                filters = (wanted.phase, wanted.timestamp, wanted.id, wanted.is_withdrawn)
                rows = await connection.fetch(_CANDIDATES, self._year, day, *filters)
                entries = [
                    Entry(
                        row["llm"],
                        row["phase"],
                        row["moment"],
                        row["time"],
                        measure_key=row["measure"],
                        withdrawn=row["withdrawn"],
                        details_key=msgspec.json.decode(row["details"] or "null"),
                    )
                    for row in rows
                ]
                place = choose_record(day, wanted, entries)
                await connection.execute(_WITHDRAW, rows[place]["id"], mark_text)
                return entries[place]

        return await self._database.writer.run(mark)

    def take_in_journals(self) -> None:
        """Do nothing: a database has no journals."""

    async def close(self) -> None:
        """Finish the write under way."""
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=SETTLE_SECONDS)


def _write_array(elements: Iterable[str]) -> str:
    return f"{{{','.join(elements)}}}"


def _quote(text: str) -> str:
    """Write a text as an element of an array."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unsure(why: str) -> Unavailable:
    return Unavailable(
        f"{why} The record may be there or not.",
        next_step="Look with speed_history, or send it again with the same idempotency key.",
        retry_after=1.0,
    )
