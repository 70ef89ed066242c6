"""Task stores: the interface, and the store in memory.

A store records that a task was created and how it ended. It counts tasks and results against the limits and
removes them when they expire. The state of a running task is only in its process. A store that outlives its
process reports the unfinished tasks of a dead process as interrupted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Protocol

from ..limits import Ledger, Limits
from .record import Kept, TaskRecord, check_new_task, check_payload

_EXPIRE_SECONDS = 1.0
"""Minimum pause between two removals of expired tasks."""


class TaskStore(Protocol):
    """Keeps the records of tasks."""

    async def open(self, limits: Limits) -> None:
        """Open the store; called once, before anything else. This process owns the tasks it creates."""

    async def close(self, left: Sequence[TaskRecord] = ()) -> None:
        """Write these final states if possible, then close the store."""

    async def create(self, record: TaskRecord) -> None:
        """Store a new task, so that `read` finds it in every process. Raises `TooManyTasks`."""

    async def read(self, task_id: str) -> TaskRecord | None:
        """Return a task that has not expired."""

    async def write(self, record: TaskRecord) -> bool:
        """Store a task's final state; False, and no change, if it has ended, expired or been removed.

        Raises `TooManyTasks` if its payload would exceed a limit. Writing the same state twice is safe.
        """

    async def forget(self, task_id: str) -> None:
        """Remove a task."""


class MemoryTaskStore:
    """Tasks of one process, gone when it ends."""

    def __init__(self, clock: Callable[[], float] = time.time, ledger: Ledger | None = None) -> None:
        self._clock = clock
        self._ledger = ledger or Ledger()
        self._limits = Limits()
        self._records: dict[str, TaskRecord] = {}
        self._by_caller: dict[str, Kept] = {}
        self._all = Kept()
        self._expiring: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        """Removes expired tasks that are never read again: they would stay charged to their callers."""

    async def open(self, limits: Limits) -> None:
        """Set the limits."""
        self._limits = limits

    async def close(self, left: Sequence[TaskRecord] = ()) -> None:
        """Drop all tasks."""
        for task_id in tuple(self._records):
            self._remove(task_id)
        self._expiring.clear()
        if self._timer is not None:
            self._timer.cancel()

    async def create(self, record: TaskRecord) -> None:
        """Store a new task; raises `TooManyTasks`."""
        self._expire()
        of_caller = self._by_caller.get(record.caller) or Kept()
        check_new_task(self._limits, of_caller, self._all)
        self._by_caller[record.caller] = of_caller
        self._records[record.id] = record
        self._count(of_caller, 1, 0)
        heappush(self._expiring, (record.expires, record.id))
        if self._timer is None:
            self._expire_later()

    async def read(self, task_id: str) -> TaskRecord | None:
        """Return a task that has not expired."""
        self._expire()
        return self._records.get(task_id)

    async def write(self, record: TaskRecord) -> bool:
        """Store a task's new state, unless it has ended."""
        self._expire()
        before = self._records.get(record.id)
        if before is None or before.has_ended:
            return False
        # A task that has not ended has no payload, so the new one is the whole difference.
        of_caller = self._by_caller[record.caller]
        check_payload(self._limits, record.payload, of_caller, self._all)
        self._count(of_caller, 0, len(record.payload))
        self._ledger.charge(record.caller, len(record.payload))
        self._records[record.id] = record
        return True

    async def forget(self, task_id: str) -> None:
        """Remove a task; its entry in the expiry queue is skipped later."""
        self._remove(task_id)

    def _count(self, of_caller: Kept, tasks: int, size: int) -> None:
        for kept in (of_caller, self._all):
            kept.tasks += tasks
            kept.bytes += size

    def _expire(self) -> None:
        now = self._clock()
        while self._expiring and self._expiring[0][0] <= now:
            _, task_id = heappop(self._expiring)
            self._remove(task_id)

    def _expire_later(self) -> None:
        """Remove expired tasks; schedule the next removal."""
        self._timer = None
        self._expire()
        if self._expiring:
            wait = max(_EXPIRE_SECONDS, self._expiring[0][0] - self._clock())
            self._timer = asyncio.get_running_loop().call_later(wait, self._expire_later)

    def _remove(self, task_id: str) -> None:
        record = self._records.pop(task_id, None)
        if record is None:
            return
        of_caller = self._by_caller[record.caller]
        self._count(of_caller, -1, -len(record.payload))
        self._ledger.release(record.caller, len(record.payload))
        if not of_caller.tasks:
            del self._by_caller[record.caller]
