"""Manager: the tasks of one process. Makes tasks of calls, answers for tasks, and sees each one to its end.

What runs here is answered from memory; what another process runs, or has run, is read from the store. A
change is kept as soon as the one before it is: while it waits, later changes take its place, so that a tool
that tells of its progress a thousand times a second writes only as often as the store can.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from .. import jsonrpc
from ..calls.context import Context
from ..errors import INTERNAL_ERROR, ProtocolError
from ..features.handlers import close_unstarted
from ..lazy_imports import logging
from ..limits import Limits
from .record import TaskRecord, TooManyTasks, unknown_task
from .run import Conclude, TaskRun
from .store import MemoryTaskStore, TaskStore

_ID_BYTES = 24
_STOP_SECONDS = 1.0
"""How long cancelled work may take to unwind when the server ends."""

Watcher = Callable[[TaskRecord], None]
Work = Coroutine[Any, Any, Any]


class TaskMessage(Struct):
    """What one process tells the one that runs a task."""

    cancel: bool = False
    responses: dict[str, Any] = {}


class TaskTerms(Struct, frozen=True):
    """For whom a task is made, and on which terms."""

    owner: str
    caller: str
    is_required: bool
    grace_seconds: float
    """How long the call may take to be answered as a call."""


class Tasks:
    """All tasks that this process runs or is asked for."""

    def __init__(
        self,
        limits: Limits,
        make_store: Callable[[], TaskStore] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.limits = limits
        self.ended: Counter[str] = Counter()
        """How many tasks have ended here, by status."""
        self._make_store = make_store or MemoryTaskStore
        self._clock = clock
        self._opening: asyncio.Task[TaskStore] | None = None
        self._running: dict[str, TaskRun] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._saving: dict[str, asyncio.Task[None]] = {}
        self._watchers: dict[str, list[Watcher]] = {}

    def count_running(self) -> Counter[str]:
        """Count the tasks that run here, by status."""
        return Counter(run.record.status for run in self._running.values() if run.record is not None)

    # --- a call becomes a task -----------------------------------------------------------------------------

    async def call(self, context: Context[Any], work: Work, terms: TaskTerms, conclude: Conclude) -> Any:
        """Do a call's work: returns what the work gives if that is soon, or else the record of a new task."""
        run = context.run = TaskRun(context, conclude, self._clock, self.limits.client_requests)
        if not terms.grace_seconds:
            return await self._begin_as_task(run, work, terms)
        doing = run.work = asyncio.create_task(work)
        try:
            await asyncio.wait(
                {doing, run.wanted}, timeout=terms.grace_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            return doing.result() if doing.done() else await self._become_task(run, doing, terms)
        finally:
            if not run.is_detached:
                run.stay()
                await _end_work(doing)

    async def _begin_as_task(self, run: TaskRun, work: Work, terms: TaskTerms) -> Any:
        """Make the task first, and let its work begin then."""
        try:
            record = await self._create(terms)
        except BaseException as problem:
            if isinstance(problem, TooManyTasks) and not terms.is_required:
                run.stay()
                return await work
            close_unstarted(work)
            raise
        run.work = asyncio.create_task(work)
        return self._detach(run, record, run.work)

    async def _become_task(self, run: TaskRun, doing: asyncio.Task[Any], terms: TaskTerms) -> Any:
        """Make a task of work that has begun."""
        try:
            record = await self._create(terms)
        except TooManyTasks as problem:
            if terms.is_required:
                raise
            # What has begun may be paid for: it is answered as a call, as if the client knew no tasks.
            logging.getLogger("bridgehead.mcp").warning("a call does not become a task: %s", problem)
            run.stay()
            return await doing
        return self._detach(run, record, doing)

    async def _create(self, terms: TaskTerms) -> TaskRecord:
        store = await self._open()
        now = self._clock()
        record = TaskRecord(
            secrets.token_urlsafe(_ID_BYTES), terms.owner, terms.caller, now, now, self.limits.task_seconds
        )
        try:
            await store.create(record)
        except asyncio.CancelledError:  # the client will never hear of it
            self._hold(store.forget(record.id))
            raise
        return record

    def _detach(self, run: TaskRun, record: TaskRecord, work: asyncio.Task[Any]) -> TaskRecord:
        self._running[record.id] = run
        run.begin(record, self._note_change)
        self._hold(self._follow(run, record, work))
        return record

    def _hold(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow(self, run: TaskRun, record: TaskRecord, work: asyncio.Task[Any]) -> None:
        """See a task to its end, unless it is cancelled before."""
        await asyncio.wait({work}, timeout=record.expires - self._clock())
        await self._finish(run, self._conclude(run, run.record or record, work))
        await _end_work(work)

    def _conclude(self, run: TaskRun, record: TaskRecord, work: asyncio.Task[Any]) -> TaskRecord:
        """Give the record of a task whose work is done, or whose time is over."""
        now = self._clock()
        if not work.done():
            late = ProtocolError(INTERNAL_ERROR, "The task's time to live was over before it was done.")
            return record.fail(late, now)
        if run.is_closed:
            return record
        try:
            return record.move("completed", now, record.message, run.conclude(work))
        except ProtocolError as failure:
            return record.fail(failure, now)

    async def _finish(self, run: TaskRun, record: TaskRecord) -> None:
        """Bring a task into its final state, which is kept before anybody sees it; the first one counts."""
        if not run.close():
            return
        kept = await self._keep(record)
        if isinstance(kept, TooManyTasks):
            record = record.fail(kept, self._clock())
            kept = await self._keep(record)
        run.record = record
        self.ended[record.status] += 1
        self._tell(record)
        if kept is None:  # the store does not have it, so this process answers for it while it lasts
            await asyncio.sleep(max(0.0, record.expires - self._clock()))
        self._running.pop(record.id, None)

    # --- what changes --------------------------------------------------------------------------------------

    def _note_change(self, run: TaskRun, record: TaskRecord) -> None:
        """Tell those that watch here, and keep the new state."""
        self._tell(record)
        if record.id not in self._saving:
            self._saving[record.id] = asyncio.create_task(self._save(run, record.id))

    def _tell(self, record: TaskRecord) -> None:
        for watcher in tuple(self._watchers.get(record.id, ())):
            watcher(record)

    async def _save(self, run: TaskRun, task_id: str) -> None:
        """Keep the newest state of a task, until no newer one has come meanwhile."""
        try:
            saved = None
            while run.record is not None and run.record is not saved and not run.is_closed:
                saved = run.record
                await self._keep(saved)
        finally:
            del self._saving[task_id]

    async def _keep(self, record: TaskRecord) -> bool | TooManyTasks | None:
        """Give the store a record; returns whether it took it, and None where it could not be asked."""
        try:
            return await (await self._open()).write(record)
        except TooManyTasks as full:
            return full
        except Exception as problem:  # noqa: BLE001  (the work goes on; only other processes do not see it)
            logging.getLogger("bridgehead.mcp").error("a task could not be kept: %s", problem)
            return None

    # --- what clients ask ----------------------------------------------------------------------------------

    def find_running(self, task_id: str, owner: str) -> TaskRecord | None:
        """Return a task that runs here, without waiting; None where it has to be looked for."""
        run = self._running.get(task_id)
        if run is None or run.record is None:
            return None
        if run.record.owner != owner:
            raise unknown_task(task_id)
        return run.record

    async def find(self, task_id: str, owner: str) -> TaskRecord:
        """Return a task; one of another owner is as unknown as one that never was."""
        record = self.find_running(task_id, owner)
        if record is None:
            record = await (await self._open()).read(task_id)
        if record is None or record.owner != owner:
            raise unknown_task(task_id)
        return record

    async def update(self, task_id: str, owner: str, responses: dict[str, Any]) -> None:
        """Take answers to what a task asks."""
        record = await self.find(task_id, owner)
        run = self._running.get(task_id)
        if run is not None:
            run.take_answers(responses)
        elif not record.has_ended:
            await self._post(task_id, TaskMessage(responses=responses))

    async def cancel(self, task_id: str, owner: str) -> None:
        """Cancel a task; one that has ended stays as it is."""
        record = await self.find(task_id, owner)
        run = self._running.get(task_id)
        if run is not None:
            await self._cancel(run, record)
        elif not record.has_ended:
            await self._post(task_id, TaskMessage(cancel=True))

    async def _cancel(
        self, run: TaskRun, record: TaskRecord, reason: str = "The task was cancelled."
    ) -> None:
        await self._finish(run, record.move("cancelled", self._clock(), reason))

    def cancel_where(self, is_over: Callable[[Context[Any]], bool], reason: str) -> None:
        """Cancel the tasks that run here whose caller may not have them any more."""
        for run in tuple(self._running.values()):
            if run.record is not None and not run.is_closed and is_over(run.context):
                self._hold(self._cancel(run, run.record, reason))

    async def _post(self, task_id: str, message: TaskMessage) -> None:
        await (await self._open()).post(task_id, jsonrpc.encode(message))

    async def watch(self, task_id: str, owner: str, watcher: Watcher) -> bool:
        """Tell a watcher how a task stands, now and with every change; False where there is no such task."""
        self._watchers.setdefault(task_id, []).append(watcher)
        try:
            record = await self.find(task_id, owner)
        except ProtocolError:
            await self.unwatch(task_id, watcher)
            return False
        if task_id not in self._running:
            (await self._open()).watch(task_id)
        watcher(record)
        return True

    async def unwatch(self, task_id: str, watcher: Watcher) -> None:
        """Stop telling a watcher."""
        watchers = self._watchers.get(task_id, [])
        with suppress(ValueError):
            watchers.remove(watcher)
        if not watchers:
            self._watchers.pop(task_id, None)
            (await self._open()).unwatch(task_id)

    # --- what other processes say --------------------------------------------------------------------------

    def take_message(self, task_id: str, message: bytes) -> None:
        """Take what another process was told by the client of a task that runs here."""
        run = self._running.get(task_id)
        if run is None or run.record is None:
            return
        told = msgspec.json.decode(message, type=TaskMessage)
        if told.cancel:
            self._hold(self._cancel(run, run.record))
        with suppress(ProtocolError):  # the client was answered already: what does not fit stays open
            run.take_answers(told.responses)

    def notice_change(self, task_id: str) -> None:
        """Hear that another process has changed a task that is watched here."""
        if task_id in self._watchers:
            self._hold(self._tell_watchers(task_id))

    async def _tell_watchers(self, task_id: str) -> None:
        record = await (await self._open()).read(task_id)
        if record is not None:
            self._tell(record)

    # --- its life ------------------------------------------------------------------------------------------

    async def _open(self) -> TaskStore:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_store())
        return await asyncio.shield(self._opening)

    async def _open_store(self) -> TaskStore:
        store = self._make_store()
        try:
            await store.open(self.limits, self)
        except Exception as problem:  # noqa: BLE001  (tasks must not fail because a disk does)
            logging.getLogger("bridgehead.mcp").warning("tasks are kept in memory only: %s", problem)
            store = MemoryTaskStore(self._clock)
            await store.open(self.limits, self)
        return store

    async def stop(self) -> None:
        """Stop all work, and close the store, which keeps what still ran here as interrupted in one step."""
        if self._opening is None:
            return
        now = self._clock()
        running = [run for run in self._running.values() if run.close()]
        interrupted = [run.record.interrupt(now) for run in running if run.record is not None]
        left = {*self._saving.values(), *self._following}
        if left:
            await asyncio.wait(left, timeout=_STOP_SECONDS)
        for task in left:
            task.cancel()
        await (await self._open()).close(interrupted)


async def _end_work(work: asyncio.Task[Any]) -> None:
    """Stop work that nobody waits for any more, and take what it raises."""
    if not work.done():
        work.cancel()
        await asyncio.wait({work})
    if not work.cancelled():
        work.exception()
