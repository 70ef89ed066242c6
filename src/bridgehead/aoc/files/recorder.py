"""Recorder: takes speed records from many calls at once and answers each when it is on the disk.

All records of a day that wait together are written together: one lock, one new file, one flush to the disk,
however many they are. While one batch is written (in a thread, so that the loop is free), the next one
gathers.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from bridgehead.runtime.timing import Clock

from .day_file import DayFile, Recorded
from .entries import NewEntry, timestamp


class _Waiting(NamedTuple):
    entry: NewEntry
    answer: asyncio.Future[Recorded]


class Recorder:
    """The records of one event, open for writing."""

    def __init__(self, folder: str, lock_wait: float, clock: Clock) -> None:
        self._folder = folder
        self._lock_wait = lock_wait
        self._clock = clock
        self._writers: dict[int, _Writer] = {}

    async def record(self, day: int, phase: int, llm: str, time: int) -> Recorded:
        """Record a time; when this returns, it is on the disk. Raises `StorageError` or `Unavailable`."""
        writer = self._writers.get(day)
        if writer is None:
            writer = self._writers[day] = _Writer(DayFile(self._folder, day, self._lock_wait, self._clock))
        return await writer.add(NewEntry(llm, phase, time, timestamp(self._clock.now())))

    async def close(self) -> None:
        """Wait for what is being written."""
        busy = [writer.task for writer in self._writers.values() if writer.task is not None]
        if busy:
            await asyncio.wait(busy, timeout=self._lock_wait)


class _Writer:
    """Takes the records of a day as they come, and writes those that wait whenever it can."""

    def __init__(self, file: DayFile) -> None:
        self._file = file
        self._waiting: list[_Waiting] = []
        self.task: asyncio.Task[None] | None = None

    async def add(self, entry: NewEntry) -> Recorded:
        """Hand in a record and wait until it is written; it may be written even if nobody waits any more."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(entry, loop.create_future())
        self._waiting.append(waiting)
        if self.task is None:
            self.task = loop.create_task(self._write())
        return await waiting.answer

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch = [one for one in self._waiting if not one.answer.cancelled()]
                self._waiting = []
                if batch:
                    await self._write_batch(batch)
        finally:
            self.task = None

    async def _write_batch(self, batch: list[_Waiting]) -> None:
        try:
            written = await asyncio.to_thread(self._file.append, [one.entry for one in batch])
        except Exception as failure:  # noqa: BLE001 - each one who waits hears of it
            for one in batch:
                if not one.answer.done():
                    one.answer.set_exception(failure)
            return
        for one, recorded in zip(batch, written, strict=True):
            if not one.answer.done():
                one.answer.set_result(recorded)
