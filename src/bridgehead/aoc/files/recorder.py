"""Recorder: takes speed records from many calls at once and answers each when it is on the disk.

All records of a day that wait together are written together: one lock, one write, one flush, however many
they are. While one batch is written (in a thread, so that the loop is free), the next one gathers. A day
whose records went to its journal is folded when nobody has recorded for a moment.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol
from uuid import UUID

from bridgehead.runtime.errors import InvalidArgument
from bridgehead.runtime.timing import Clock

from . import layout
from .day_file import DayFile, Recorded
from .entries import Entry, Group, Measure, NewEntry, RecordKey, Source, format_timestamp
from .locking import FolderLock

MAX_KEYS = 10_000
"""Idempotency keys that are remembered."""
IDLE_SECONDS = 1.0
"""How long nobody records before a journal is folded in."""


class NewRun(NamedTuple):
    """A time to record."""

    day: int
    phase: int
    llm: str
    time: int
    measure: Measure | None = None
    source: Source | None = None


class _Waiting(NamedTuple):
    entry: NewEntry
    answer: asyncio.Future[Recorded]


class RecordWriter(Protocol):
    """Where records are written: to files, or to a database."""

    async def record(self, run: NewRun, by: int | None = None, key: UUID | None = None) -> Recorded:
        """Record a time durably, once for each key."""
        ...

    def record_now(self, runs: list[NewRun]) -> list[Recorded]:
        """Record times of one day for somebody who is not in an event loop. Blocks."""
        ...

    async def withdraw(self, day: int, group: Group, timestamp: str) -> Entry:
        """Take a record back."""
        ...

    async def settled(self, by: int) -> None:
        """Wait for what somebody recorded."""
        ...

    def fold_leftovers(self) -> None:
        """See to what a killed process left."""
        ...

    async def close(self) -> None:
        """Wait for what is being written."""
        ...


class Unanswered:
    """What each client has recorded and not heard of yet."""

    def __init__(self) -> None:
        self._answers: dict[int, set[asyncio.Future[Recorded]]] = {}

    def add(self, by: int, answer: asyncio.Future[Recorded]) -> None:
        """Note an answer that somebody waits for."""
        self._answers.setdefault(by, set()).add(answer)
        answer.add_done_callback(lambda done: self._forget(by, done))

    def _forget(self, by: int, answer: asyncio.Future[Recorded]) -> None:
        waiting = self._answers.get(by, set())
        waiting.discard(answer)
        if not waiting:
            self._answers.pop(by, None)

    async def settled(self, by: int) -> None:
        """Wait for what somebody recorded."""
        waiting = self._answers.get(by)
        if waiting:
            await asyncio.wait(set(waiting))


def check_same(run: NewRun, recorded: Recorded) -> Recorded:
    """Refuse a request whose key has made another record."""
    entry = recorded.entry
    if (run.phase, run.llm, run.time, run.measure, run.source) != (
        entry.phase,
        entry.llm,
        entry.time,
        entry.measure,
        entry.source,
    ):
        raise InvalidArgument(
            "The idempotency key was used for another record.", next_step="Take a new key for a new record."
        )
    return recorded


def key_of(principal: str | None, key: str) -> UUID:
    """Return the key under which a request's record is stored: each caller has keys of its own."""
    from hashlib import sha256

    return UUID(bytes=sha256(f"{principal or ''}\n{key}".encode()).digest()[:16])


class Recorder:
    """The records of one event, open for writing."""

    def __init__(self, folder: str, lock_wait: float, clock: Clock, key: RecordKey = "speedMs") -> None:
        self._lock = FolderLock(folder, lock_wait)
        self._lock_wait = lock_wait
        self._clock = clock
        self._key: RecordKey = key
        self._days: dict[int, _DayQueue] = {}
        self._answers: dict[UUID, asyncio.Future[Recorded]] = {}
        self._unanswered = Unanswered()

    async def record(self, run: NewRun, by: int | None = None, key: UUID | None = None) -> Recorded:
        """Record a time; when this returns, it is on the disk. Raises `StorageError` or `Unavailable`.

        A key that this process has seen lately is not recorded again; it is known to nobody else.
        """
        answer = self._answers.get(key) if key is not None else None
        if answer is None or (answer.done() and (answer.cancelled() or answer.exception())):
            answer = self._queue(run.day).add(self._entry(run))
            if key is not None:
                self._remember(key, answer)
        if by is not None:
            self._unanswered.add(by, answer)
        return check_same(run, await answer)

    def _remember(self, key: UUID, answer: asyncio.Future[Recorded]) -> None:
        if len(self._answers) >= MAX_KEYS:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = answer

    async def settled(self, by: int) -> None:
        """Wait for what somebody recorded before asking: the contract has one request after the other."""
        await self._unanswered.settled(by)

    def record_now(self, runs: list[NewRun]) -> list[Recorded]:
        """Record times of one day for somebody who is not in an event loop. Blocks."""
        file = self._queue(runs[0].day).file
        entries = [self._entry(run) for run in runs]
        recorded = file.append(entries)
        file.fold()
        return recorded

    def _entry(self, run: NewRun) -> NewEntry:
        moment = format_timestamp(self._clock.now())
        return NewEntry(run.llm, run.phase, run.time, moment, run.measure, run.source)

    async def withdraw(self, day: int, group: Group, timestamp: str) -> Entry:
        """Take a record back: it stays, marked, and counts no more."""
        return await asyncio.to_thread(self._queue(day).file.withdraw, group, timestamp)

    def fold_leftovers(self) -> None:
        """See to it that journals which a killed process left are folded in."""
        for day in layout.DAYS:
            self._queue(day).fold_when_idle()

    def _queue(self, day: int) -> _DayQueue:
        if day not in self._days:
            self._days[day] = _DayQueue(DayFile(self._lock, day, self._clock, self._key))
        return self._days[day]

    async def close(self) -> None:
        """Wait for what is being written, and fold the journals in."""
        busy = [queue.task for queue in self._days.values() if queue.task is not None]
        if busy:
            await asyncio.wait(busy, timeout=self._lock_wait)
        for queue in self._days.values():
            await queue.close()


class _DayQueue:
    """Takes the records of a day as they come, and writes those that wait whenever it can."""

    def __init__(self, file: DayFile) -> None:
        self.file = file
        self._waiting: list[_Waiting] = []
        self.task: asyncio.Task[None] | None = None
        self._folding: asyncio.TimerHandle | None = None

    def add(self, entry: NewEntry) -> asyncio.Future[Recorded]:
        """Hand in a record; it may be written even if nobody waits for the answer any more."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(entry, loop.create_future())
        self._waiting.append(waiting)
        if self.task is None:
            self.task = loop.create_task(self._write())
        return waiting.answer

    async def _write(self) -> None:
        self._fold_later(None)
        try:
            while self._waiting:
                batch = [one for one in self._waiting if not one.answer.cancelled()]
                self._waiting = []
                if batch:
                    await self._write_batch(batch)
        finally:
            self.task = None
            self.fold_when_idle()

    async def _write_batch(self, batch: list[_Waiting]) -> None:
        try:
            written = await asyncio.to_thread(self.file.append, [one.entry for one in batch])
        except Exception as failure:  # noqa: BLE001 - each one who waits hears of it
            for one in batch:
                if not one.answer.done():
                    one.answer.set_exception(failure)
            return
        for one, recorded in zip(batch, written, strict=True):
            if not one.answer.done():
                one.answer.set_result(recorded)

    def fold_when_idle(self) -> None:
        """Fold the journal in, if there is one, once nobody has written to it for a moment."""
        if self.file.has_journal:
            self._fold_later(IDLE_SECONDS)

    def _fold_later(self, seconds: float | None) -> None:
        if self._folding is not None:
            self._folding.cancel()
            self._folding = None
        if seconds is not None:
            self._folding = asyncio.get_running_loop().call_later(seconds, self._fold_now)

    def _fold_now(self) -> None:
        self._folding = None
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._fold())

    async def _fold(self) -> None:
        """Fold, as a task of its own that records wait behind."""
        was_tried = True
        try:
            was_tried = await asyncio.to_thread(self._fold_quietly, IDLE_SECONDS / 2)
        finally:
            self.task = None
            if not was_tried:  # another process recorded a moment ago
                self.fold_when_idle()
            if self._waiting:
                self.task = asyncio.get_running_loop().create_task(self._write())

    def _fold_quietly(self, idle_seconds: float) -> bool:
        """Fold, unless somebody wrote a moment ago; tell whether it was tried. What stays is still read."""
        from bridgehead.runtime.errors import BridgeError

        try:
            return self.file.fold(idle_seconds)
        except BridgeError as failure:
            import logging

            logging.getLogger("bridgehead.aoc").warning("a journal was not folded in: %s", failure)
            return True

    async def close(self) -> None:
        """Fold the journal in, if there is one."""
        is_due = self._folding is not None
        self._fold_later(None)
        if is_due:
            await asyncio.to_thread(self._fold_quietly, 0.0)
