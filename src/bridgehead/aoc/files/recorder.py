"""Recorder: write speed records of many concurrent calls, and answer each once it is on the disk.

All waiting records of a day are written as one batch: one lock, one write, one flush. While a thread writes a
batch, the next one gathers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from hashlib import sha256
from typing import NamedTuple, Protocol
from uuid import UUID

from bridgehead.mcp import work_for_all
from bridgehead.runtime.errors import BridgeError, InvalidArgument
from bridgehead.runtime.timing import Clock

from . import layout
from .day_file import DayFile, Recorded
from .entries import (
    CLAIMED,
    Details,
    Entry,
    Grade,
    Measure,
    NewEntry,
    RecordKey,
    Wanted,
    format_timestamp,
)
from .locking import FolderLock
from .seals import Seals

MAX_KEYS = 10_000
"""How many idempotency keys are remembered."""


class NewRun(NamedTuple):
    """A time to record, in milliseconds."""

    day: int
    phase: int
    llm: str
    time: int
    measure: Measure | None = None
    grade: Grade = CLAIMED
    details: Details | None = None
    """A run that names its attempt is recorded once."""

    def at(self, seconds: float) -> NewEntry:
        """Return the record of this time, made at a moment in seconds since the epoch."""
        moment = format_timestamp(seconds)
        return NewEntry(self.llm, self.phase, self.time, moment, self.measure, self.grade, self.details)


class _Waiting(NamedTuple):
    entry: NewEntry
    answer: asyncio.Future[Recorded]


class RecordWriter(Protocol):
    """Records in files (`Recorder`) or in PostgreSQL (`DatabaseRecorder`)."""

    async def record(self, run: NewRun, client: int | None = None, key: UUID | None = None) -> Recorded:
        """Record a time durably, once per idempotency key."""
        ...

    def record_now(self, runs: list[NewRun]) -> list[Recorded]:
        """Record times of one day from outside the event loop. Blocks."""
        ...

    async def withdraw(self, day: int, wanted: Wanted) -> Entry:
        """Withdraw a record, or count it again: it stays either way."""
        ...

    async def settled(self, client: int) -> None:
        """Wait until the client's records are stored."""
        ...

    def take_in_journals(self) -> None:
        """Put the records that version 0.3 has left in journals into their files. Blocks."""
        ...

    async def close(self) -> None:
        """Finish the writes under way."""
        ...


def check_same(run: NewRun, recorded: Recorded) -> Recorded:
    """Refuse a key that was used for a different record."""
    entry = recorded.entry
    recorded_run = (entry.phase, entry.llm, entry.time, entry.measure, entry.grade)
    if (run.phase, run.llm, run.time, run.measure, run.grade) != recorded_run:
        raise InvalidArgument(
            "The idempotency key was used for another record.", next_step="Take a new key for a new record."
        )
    return recorded


async def answer_all(answers: list[asyncio.Future[Recorded]], writing: Awaitable[list[Recorded]]) -> None:
    """Resolve each caller's future with its record once the batch is written; on failure, fail them all."""
    try:
        written = await writing
    except Exception as failure:  # noqa: BLE001 - passed on to each caller of the batch
        for answer in answers:
            if not answer.done():  # otherwise its caller was cancelled
                answer.set_exception(failure)
    else:
        for answer, recorded in zip(answers, written, strict=True):
            if not answer.done():
                answer.set_result(recorded)


def key_of(principal: str | None, key: str) -> UUID:
    """Return the stored form of an idempotency key; two callers never share one."""
    return UUID(bytes=sha256(f"{principal or ''}\n{key}".encode()).digest()[:16])


def key_of_attempt(attempt: str) -> UUID:
    """Return the key of the record of an attempt; it never equals a caller's key."""
    return UUID(bytes=sha256(f"attempt\0{attempt}".encode()).digest()[:16])


class Recorder:
    """The records of one year in files, open for writing."""

    def __init__(
        self,
        folder: str,
        lock_wait: float,
        clock: Clock,
        key: RecordKey = "speedMs",
        seals: Seals | None = None,
        anchor: layout.Anchor | None = None,
    ) -> None:
        self._lock = FolderLock(folder, lock_wait, anchor)
        self._seals = seals
        self._lock_wait = lock_wait
        self._clock = clock
        self._key: RecordKey = key
        self._days: dict[int, _DayQueue] = {}
        self._by_key: dict[UUID, asyncio.Future[Recorded]] = {}
        self._unanswered: dict[int, set[asyncio.Future[Recorded]]] = {}
        """The records under way, by client."""

    async def record(self, run: NewRun, client: int | None = None, key: UUID | None = None) -> Recorded:
        """Record a time; it is on the disk when this returns. Raises `StorageError` or `Unavailable`.

        A key that this process has seen lately is not recorded again; other processes do not know it.
        """
        answer = self._by_key.get(key) if key is not None else None
        if answer is None or (answer.done() and (answer.cancelled() or answer.exception())):
            answer = self._queue(run.day).add(run.at(self._clock.now()))
            # Remembered before the write: a repeat that arrives meanwhile waits for the same answer.
            if key is not None:
                if len(self._by_key) >= MAX_KEYS:
                    del self._by_key[next(iter(self._by_key))]
                self._by_key[key] = answer
        if client is None:
            return check_same(run, await answer)
        under_way = self._unanswered.setdefault(client, set())
        under_way.add(answer)
        try:
            return check_same(run, await answer)
        finally:
            under_way.discard(answer)
            if not under_way:
                self._unanswered.pop(client, None)

    async def settled(self, client: int) -> None:
        """Wait until the client's records are on the disk: the contract handles its requests in order."""
        under_way = self._unanswered.get(client)
        if under_way:
            await asyncio.wait(set(under_way))

    def record_now(self, runs: list[NewRun]) -> list[Recorded]:
        """Record times of one day from outside the event loop. Blocks."""
        return self._queue(runs[0].day).file.append([run.at(self._clock.now()) for run in runs])

    async def withdraw(self, day: int, wanted: Wanted) -> Entry:
        """Withdraw a record, or count it again: it stays either way."""
        return await asyncio.to_thread(self._queue(day).file.withdraw, wanted)

    def take_in_journals(self) -> None:
        """Put the records that version 0.3 has left in journals into their files. Blocks."""
        for day in layout.DAYS:
            try:
                self._queue(day).file.take_in_journal()
            except BridgeError as failure:  # it stays, and is read as before
                logging.getLogger("bridgehead.aoc").warning("a journal was not taken in: %s", failure)

    def _queue(self, day: int) -> _DayQueue:
        if day not in self._days:
            self._days[day] = _DayQueue(DayFile(self._lock, day, self._clock, self._key, self._seals))
        return self._days[day]

    async def close(self) -> None:
        """Finish the writes under way."""
        # Bounded like a write's wait for the folder's lock.
        busy = [queue.task for queue in self._days.values() if queue.task is not None]
        if busy:
            await asyncio.wait(busy, timeout=self._lock_wait)


class _DayQueue:
    """Collects the records of a day while one batch is written, then writes them as the next batch.

    `task` is the one write under way; everything else of this day waits behind it.
    """

    def __init__(self, file: DayFile) -> None:
        self.file = file
        self._waiting: list[_Waiting] = []
        self.task: asyncio.Task[None] | None = None

    def add(self, entry: NewEntry) -> asyncio.Future[Recorded]:
        """Queue a record. Once its batch is under way, cancelling the answer does not stop the write."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(entry, loop.create_future())
        self._waiting.append(waiting)
        if self.task is None:
            self.task = loop.create_task(self._write())
        return waiting.answer

    async def _write(self) -> None:
        work_for_all()
        try:
            while self._waiting:
                batch = [waiting for waiting in self._waiting if not waiting.answer.cancelled()]
                self._waiting = []
                if not batch:
                    continue
                entries = [waiting.entry for waiting in batch]
                await answer_all(
                    [waiting.answer for waiting in batch], asyncio.to_thread(self.file.append, entries)
                )
        finally:
            self.task = None
