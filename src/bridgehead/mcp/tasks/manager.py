"""Manager: the tasks of one process. Turns calls into tasks and answers clients' requests about them.

A task belongs to the process that runs it, and its id begins with that process's name. While it runs, its
owner answers from memory. The store holds two states of it: created, so that it reads as interrupted if its
owner dies, and final, which the owner keeps until it is stored.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from ..calls.context import Context
from ..coroutines import close_unstarted
from ..errors import INTERNAL_ERROR, OVERLOADED, ProtocolError
from ..limits import Ledger, Limits
from ..shape import weigh
from ..threads import Measured
from .record import TaskRecord, TooManyTasks, unknown_task
from .run import Conclude, TaskRun
from .store import MemoryTaskStore, TaskStore

_ID_BYTES = 24
_STOP_SECONDS = 1.0
"""How long cancelled work may take to unwind when the server stops."""

WATCH_SECONDS = 0.25
"""How often to poll another process about its task that is watched here."""
_FIRST_RETRY_SECONDS = 0.1
_LAST_RETRY_SECONDS = 5.0


class TaskTerms(Struct, frozen=True):
    """The owner and the caller of a task, and when a call becomes one."""

    owner: str
    caller: str
    is_required: bool
    grace_seconds: float
    """How long the call may take before it becomes a task."""


class Tasks:
    """All tasks that this process runs or is asked about."""

    def __init__(
        self,
        limits: Limits,
        make_store: Callable[[], TaskStore] | None = None,
        clock: Callable[[], float] = time.time,
        *,
        id_prefix: str = "",
        fetch: Callable[[str], Awaitable[TaskRecord | None]] | None = None,
    ) -> None:
        self.limits = limits
        self.ledger = Ledger()
        """Charges the arguments of running tasks, and results that are in memory, to their callers."""
        self.ended: Counter[str] = Counter()
        """Number of tasks that ended here, by status."""
        self._make_store = make_store
        self._clock = clock
        self._id_prefix = id_prefix
        self._fetch = fetch
        """Asks the process that owns a task about it; None if there is none, or it has no such task."""
        self._opening: asyncio.Task[TaskStore] | None = None
        self._running: dict[str, TaskRun] = {}
        """Tasks whose work still runs here, with their arguments."""
        self._unstored: dict[str, TaskRecord] = {}
        """Final states that the store does not have yet."""
        self._background: set[asyncio.Task[None]] = set()
        self._watchers: dict[str, list[Callable[[TaskRecord], None]]] = {}

    def count_running(self) -> Counter[str]:
        """Count the tasks that run here, by status."""
        records = [run.record for run in self._running.values()]
        return Counter(record.status for record in records if record is not None and not record.has_ended)

    # --- a call becomes a task -----------------------------------------------------------------------------

    async def call(
        self, context: Context[Any], work: Coroutine[Any, Any, Any], terms: TaskTerms, conclude: Conclude
    ) -> Any:
        """Run a call; return its result if it ends within the grace time, else the record of a new task."""
        run = context.run = TaskRun(context, conclude, self._clock, self.limits.client_requests)
        try:
            if terms.grace_seconds:
                return await self._call_for_a_while(run, work, terms)
            return await self._begin_as_task(run, work, terms)
        finally:
            if not run.is_detached:
                context.run = run.work = None  # cycles that keep the arguments alive

    async def _call_for_a_while(self, run: TaskRun, work: Coroutine[Any, Any, Any], terms: TaskTerms) -> Any:
        """Begin as a call; turn it into a task after the grace time, or when the handler asks for it."""
        doing = run.work = asyncio.create_task(self._measured(work, terms))
        try:
            await asyncio.wait(
                {doing, run.wanted}, timeout=terms.grace_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not doing.done():
                try:
                    return self._detach(run, await self._create(run, terms), doing)
                except TooManyTasks as problem:
                    if terms.is_required:
                        raise
                    # The limit of tasks is reached, but the work may be paid for: answer it as a call.
                    logging.getLogger("bridgehead.mcp").warning(
                        "a call does not become a task: %s", problem.message
                    )
                    run.stay()
            return await doing
        finally:
            if not run.is_detached:
                run.stay()
                await _end_work(doing)

    async def _begin_as_task(self, run: TaskRun, work: Coroutine[Any, Any, Any], terms: TaskTerms) -> Any:
        """Create the task before its work begins."""
        try:
            record = await self._create(run, terms)
        except BaseException as problem:
            if not isinstance(problem, TooManyTasks) or terms.is_required:
                close_unstarted(work)
                raise
            run.stay()
        else:
            run.work = asyncio.create_task(self._measured(work, terms))
            return self._detach(run, record, run.work)
        return await work

    def _measured(self, work: Coroutine[Any, Any, Any], terms: TaskTerms) -> Coroutine[Any, Any, Any]:
        return Measured(work, partial(self.ledger.spend, terms.caller))

    async def _create(self, run: TaskRun, terms: TaskTerms) -> TaskRecord:
        store = await self._open()
        now = self._clock()
        task_id = self._id_prefix + secrets.token_urlsafe(_ID_BYTES)
        record = TaskRecord(task_id, terms.owner, terms.caller, now, now, self.limits.task_seconds)
        # The request is answered when the task begins, and no longer pays for its arguments from then on.
        size = run.input_bytes = weigh(memoryview(run.context.arguments))
        if not self.ledger.hold(terms.caller, size):
            raise TooManyTasks(
                f"You have reached the memory limit for one caller, and the arguments take {size} bytes. "
                "Wait until some of your tasks have ended, then try again."
            )
        try:
            await store.create(record)
        except BaseException as problem:
            self.ledger.release(terms.caller, size)
            if isinstance(problem, asyncio.CancelledError):  # the client will never learn its id
                self._run_in_background(store.forget(record.id))
            raise
        return record

    def _detach(self, run: TaskRun, record: TaskRecord, work: asyncio.Task[Any]) -> TaskRecord:
        self._running[record.id] = run
        run.begin(record, self._tell)
        self._run_in_background(self._follow(run, record, work))
        return record

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # --- a task ends ---------------------------------------------------------------------------------------

    async def _follow(self, run: TaskRun, record: TaskRecord, work: asyncio.Task[Any]) -> None:
        """Await a task's work and record its end, unless the task is cancelled first."""
        try:
            await asyncio.wait({work}, timeout=record.expires - self._clock())
            if not run.is_closed:
                final = self._conclude(run, run.record or record, work)
                run.close()
                # Stored first: only the store knows whether the result is within its limits. If the store
                # fails, the result is shown anyway and stored later.
                self._keep(final)
                try:
                    await self._write(final)
                except TooManyTasks as full:
                    final = final.fail(full, self._clock())
                    self._keep(final)
                except Exception as problem:  # noqa: BLE001 - the result may be paid for; it is kept and shown
                    logging.getLogger("bridgehead.mcp").warning("a task cannot be stored yet: %s", problem)
                self._end(run, final)
            await _end_work(work)
        finally:
            self._running.pop(record.id, None)
            run.context.run = run.work = None  # break cycles, as above
            self.ledger.release(record.caller, run.input_bytes)

    def _conclude(self, run: TaskRun, record: TaskRecord, work: asyncio.Task[Any]) -> TaskRecord:
        """Return the final record of a task whose work is done or whose time to live has passed."""
        now = self._clock()
        if not work.done():
            late = ProtocolError(INTERNAL_ERROR, "The task's time to live was over before it was done.")
            return record.fail(late, now)
        try:
            return record.move("completed", now, record.message, run.conclude(work))
        except ProtocolError as failure:
            return record.fail(failure, now)

    def _cancel(self, run: TaskRun, record: TaskRecord, reason: str) -> None:
        """Cancel a task now, without waiting for the store."""
        if run.close():
            final = record.move("cancelled", self._clock(), reason)
            self._keep(final)
            self._end(run, final)

    def _end(self, run: TaskRun, final: TaskRecord) -> None:
        """Publish a task's final state, and keep it here until it is stored."""
        run.record = final
        self.ended[final.status] += 1
        self._tell(final)
        if final.id in self._unstored:
            self._run_in_background(self._write_until_stored(final))

    async def _write(self, final: TaskRecord) -> None:
        """Store a final state; the store returns False if it has one already, or the task has expired."""
        await (await self._open()).write(final)
        self._drop(final.id)

    def _keep(self, final: TaskRecord) -> None:
        """Keep a final state until it is stored; charge the caller, but never refuse a result."""
        self._drop(final.id)
        self._unstored[final.id] = final
        self.ledger.charge(final.caller, len(final.payload))

    def _drop(self, task_id: str) -> None:
        final = self._unstored.pop(task_id, None)
        if final is not None:
            self.ledger.release(final.caller, len(final.payload))

    async def _write_until_stored(self, final: TaskRecord) -> None:
        delay = _FIRST_RETRY_SECONDS
        while final.expires > self._clock():
            try:
                await self._write(final)
            except Exception as problem:  # noqa: BLE001 - whatever it is, it is tried again
                logging.getLogger("bridgehead.mcp").debug("a task cannot be stored yet: %s", problem)
                await asyncio.sleep(delay)
                delay = min(delay * 2, _LAST_RETRY_SECONDS)
            else:
                return
        self._drop(final.id)

    def _tell(self, record: TaskRecord) -> None:
        for watcher in tuple(self._watchers.get(record.id, ())):
            watcher(record)

    # --- what clients ask ----------------------------------------------------------------------------------

    def find_running(self, task_id: str, owner: str) -> TaskRecord | None:
        """Return a task that runs here or is not stored yet, without waiting; None for all others."""
        record = self._look_up(task_id)
        if record is not None and record.owner != owner:
            raise unknown_task(task_id, is_ours=True)
        return record

    def _look_up(self, task_id: str) -> TaskRecord | None:
        run = self._running.get(task_id)
        return self._unstored.get(task_id) if run is None else run.record

    async def read(self, task_id: str) -> TaskRecord | None:
        """Return a task of this process or its store without an owner check: for other processes only."""
        return self._look_up(task_id) or await (await self._open()).read(task_id)

    async def find(self, task_id: str, owner: str) -> TaskRecord:
        """Return a task, from the process that runs it or from the store.

        A task of another owner is reported as unknown.
        """
        record = self.find_running(task_id, owner)
        if record is None and self._fetch is not None:
            record = await self._fetch(task_id)
        if record is None:
            record = await self.read(task_id)
        if record is None or record.owner != owner:
            raise unknown_task(task_id, is_ours=task_id.startswith(self._id_prefix))
        return record

    async def update(self, task_id: str, owner: str, responses: dict[str, Any]) -> None:
        """Pass answers to a task's questions."""
        if self.find_running(task_id, owner) is None:
            await self._check_has_ended(task_id, owner)
        elif task_id in self._running:
            self._running[task_id].take_answers(responses)

    async def cancel(self, task_id: str, owner: str) -> None:
        """Cancel a task; one that has ended stays as it is."""
        record = self.find_running(task_id, owner)
        if record is None:
            await self._check_has_ended(task_id, owner)
        elif task_id in self._running:
            self._cancel(self._running[task_id], record, "The task was cancelled.")

    async def _check_has_ended(self, task_id: str, owner: str) -> None:
        """Raise unless the task has ended: one that runs elsewhere is changed by its own process only."""
        record = await self.find(task_id, owner)
        if not record.has_ended:
            raise ProtocolError(
                OVERLOADED,
                "The task runs in another process, which cannot be reached right now. Try again in a moment.",
            )

    def cancel_where(self, is_over: Callable[[Context[Any]], bool], reason: str) -> None:
        """Cancel the tasks that run here for callers who lost access."""
        for run in tuple(self._running.values()):
            if run.record is not None and is_over(run.context):
                self._cancel(run, run.record, reason)

    async def watch(self, task_id: str, owner: str, watcher: Callable[[TaskRecord], None]) -> bool:
        """Send a watcher the state of a task, now and on every change; False if there is no such task."""
        try:
            record = await self.find(task_id, owner)
        except ProtocolError:
            return False
        self._watchers.setdefault(task_id, []).append(watcher)
        watcher(record)
        if task_id not in self._running and not record.has_ended and len(self._watchers[task_id]) == 1:
            self._run_in_background(self._poll(record))
        return True

    def unwatch(self, task_id: str, watcher: Callable[[TaskRecord], None]) -> None:
        """Stop notifying a watcher."""
        watchers = self._watchers.get(task_id, [])
        with suppress(ValueError):
            watchers.remove(watcher)
        if not watchers:
            self._watchers.pop(task_id, None)

    async def _poll(self, record: TaskRecord) -> None:
        """Poll a task of another process and notify its watchers here."""
        while record.id in self._watchers and not record.has_ended:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                newest = await self.find(record.id, record.owner)
            except ProtocolError:  # it has expired, or its store is unavailable
                newest = record
            if newest.expires <= self._clock():
                return
            if newest != record:
                record = newest
                self._tell(record)

    # --- its life ------------------------------------------------------------------------------------------

    async def _open(self) -> TaskStore:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_store())
        return await asyncio.shield(self._opening)

    async def _open_store(self) -> TaskStore:
        store = MemoryTaskStore(ledger=self.ledger) if self._make_store is None else self._make_store()
        try:
            await store.open(self.limits)
        except Exception as problem:  # noqa: BLE001  (tasks must not fail because a disk does)
            logging.getLogger("bridgehead.mcp").warning("tasks are kept in memory only: %s", problem)
            store = MemoryTaskStore(self._clock, self.ledger)
            await store.open(self.limits)
        return store

    async def stop(self) -> None:
        """Stop all work and store every final state; what still ran is interrupted."""
        if self._opening is None:
            return
        for run in self._running.values():
            if run.record is not None and run.close():
                run.record = run.record.interrupt(self._clock())
                self._keep(run.record)
        if self._background:
            await asyncio.wait(self._background, timeout=_STOP_SECONDS)
        for task in self._background:
            task.cancel()
        try:
            await (await self._open()).close(list(self._unstored.values()))
        except Exception as problem:  # noqa: BLE001 - a full disk must not keep the process from ending
            logging.getLogger("bridgehead.mcp").warning(
                "the final states of tasks were not stored, so they read as interrupted: %s", problem
            )


async def _end_work(work: asyncio.Task[Any]) -> None:
    """Cancel work that nobody awaits, and ignore its exceptions."""
    if not work.done():
        work.cancel()
        await asyncio.wait({work})
    if not work.cancelled():
        work.exception()
