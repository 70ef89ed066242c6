"""Threads: where blocking work runs. Each bridge has its own threads, and no caller gets all of them.

`FairThreads` is the event loop's default executor, so `asyncio.to_thread` and `in_thread` use it. Work
beyond a caller's share waits until a job of that caller ends, then queues behind other callers' jobs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from time import perf_counter, thread_time
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Worker = tuple[str, str]
"""The bridge that work is for, and the caller; empty for work of the process itself."""
current_worker: ContextVar[Worker] = ContextVar("worker", default=("", ""))
"""Bridge and caller that the running task works for; tasks inherit it from their creator."""


def work_for_all() -> None:
    """Count the current task's blocking work as its bridge's, not its caller's: several callers wait for it.

    Call it first in a task that works for many callers, such as a writer of a shared queue.
    Otherwise that work would wait its turn with the caller that happened to start it.
    """
    bridge, _ = current_worker.get()
    current_worker.set((bridge, ""))


THREADS = 6
"""Threads of one bridge. They mostly wait for disks; Python runs one of them at a time."""
THREADS_PER_CALLER = 2

_Job = list[Any]
"""A future and the function whose result it gets. `FairThreads._run` empties the list: otherwise an exception
would keep itself and the arguments of the whole call alive, through the frames of its traceback, until the
garbage collector runs."""


LONG_STEP_SECONDS = 0.001
"""Steps on the event loop that are shorter than this are not charged: there the connections take turns."""


class Measured(Coroutine[Any, Any, T]):
    """A coroutine that runs another and reports each long step that it takes on the event loop."""

    __slots__ = ("_on_time", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], on_time: Callable[[float], None]) -> None:
        self._work = work
        self._on_time = on_time

    def send(self, value: Any) -> Any:
        """Run the next step."""
        began = perf_counter()
        try:
            return self._work.send(value)
        finally:
            self._report(perf_counter() - began)

    def throw(self, *error: Any) -> Any:
        """Run the next step with an exception, such as a cancellation."""
        began = perf_counter()
        try:
            return self._work.throw(*error)
        finally:
            del error  # its traceback has this frame: see `forget_frames`
            self._report(perf_counter() - began)

    def close(self) -> None:
        """Close the other coroutine."""
        self._work.close()

    def _report(self, took: float) -> None:
        if took > LONG_STEP_SECONDS:
            self._on_time(took)

    def __await__(self) -> Measured[T]:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def __iter__(self) -> Measured[T]:
        return self


class FairThreads(ThreadPoolExecutor):
    """The threads of all bridges, in one executor for each bridge, made when first needed.

    It inherits from `ThreadPoolExecutor` because event loops accept nothing else as their default.
    """

    def __init__(self, on_time: Callable[[str, float], None] = lambda _caller, _seconds: None) -> None:
        super().__init__(max_workers=1)  # its own thread is never started
        self._on_time = on_time
        self._lock = threading.Lock()
        """Protects the four attributes below; held for a moment, never while work runs."""
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._running: dict[Worker, int] = {}
        self._waiting: dict[Worker, deque[_Job]] = {}
        self._is_closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a thread of the current bridge, within the current caller's part of them."""
        worker = current_worker.get()
        future: Future[T] = Future()
        job: _Job = [future, partial(fn, *args, **kwargs)]
        with self._lock:
            if self._is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            running = self._running.get(worker, 0)
            # Work of the process itself has no caller and may use all threads of its bridge.
            if worker[1] and running >= THREADS_PER_CALLER:
                self._waiting.setdefault(worker, deque()).append(job)
            else:
                self._running[worker] = running + 1
                self._start(worker, job)
        return future

    def _start(self, worker: Worker, job: _Job) -> None:
        bridge = worker[0]
        pool = self._pools.get(bridge)
        if pool is None:
            pool = self._pools[bridge] = ThreadPoolExecutor(THREADS, f"{bridge or 'bridgehead'}-thread")
        pool.submit(self._run, worker, job)

    def _run(self, worker: Worker, job: _Job) -> None:
        future, work = job
        job.clear()
        if future.set_running_or_notify_cancel():
            started = thread_time()  # CPU time: waiting takes nothing from others
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - the future raises it
                future.set_exception(error)
            else:
                future.set_result(result)
            self._on_time(worker[1], thread_time() - started)
        del future, work  # a thread keeps its last frame until its next job
        with self._lock:
            waiting = self._waiting.get(worker)
            if waiting and not self._is_closed:
                self._start(worker, waiting.popleft())  # queued behind the jobs of others
                return
            self._waiting.pop(worker, None)
            self._running[worker] -= 1
            if not self._running[worker]:
                del self._running[worker]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Take no more work; see `ThreadPoolExecutor.shutdown`."""
        with self._lock:
            self._is_closed = True
            waiting = [future for jobs in self._waiting.values() for future, _ in jobs]
            self._waiting.clear()
        for future in waiting:
            future.cancel()
        for pool in self._pools.values():
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)
        super().shutdown(wait=wait, cancel_futures=cancel_futures)
