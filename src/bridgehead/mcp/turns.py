"""Turns: limits concurrent heavy work and shares it fairly between callers.

A semaphore is first come, first served, so a caller with a hundred requests makes everybody else wait for all
of them. Here each caller has few pieces running, and its next one queues behind those of other callers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar, cast

from .threads import current_worker

T = TypeVar("T")


class Turns:
    """At most `limit` pieces of work at once, few per caller; without a caller, only `limit` applies."""

    def __init__(self, limit: int, per_caller: int = 1) -> None:
        self._free = limit
        self._per_caller = per_caller
        self._running: dict[str, int] = {}
        """Callers that have a turn, and how many."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By caller, in the order of their turns."""

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn of the current caller, and keep it for the block."""
        _, caller = current_worker.get()
        turn: asyncio.Future[None] | None = None
        # Overtakes nobody: waiting callers have reached their share, or no turn is free.
        if self._may_start(caller):
            self._begin(caller)
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(caller, deque()).append(turn)
        try:
            if turn is not None:
                await turn
            yield
        finally:
            # The turn was granted, even if the task was cancelled before it resumed.
            if turn is None or not turn.cancelled():
                self._end(caller)

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Run work in a thread, in a turn that lasts until the thread is done.

        A thread cannot be stopped. If the turn ended when its call is cancelled, each further call that is
        cancelled would occupy one more thread.
        """
        is_wanted = True

        def run() -> T | None:
            return work() if is_wanted else None

        async with self.take():
            running = asyncio.ensure_future(asyncio.to_thread(run))
            try:
                # Not `shield`: since Python 3.14 it prints a failure that comes after the cancellation.
                await asyncio.wait([running])
                return cast("T", running.result())
            except asyncio.CancelledError:
                is_wanted = False  # work that still waits for a thread does not begin
                # The thread keeps a turn of its own; the one of this block ends now.
                _, caller = current_worker.get()
                self._begin(caller)
                running.add_done_callback(partial(self._end_abandoned, caller))
                raise

    def _end_abandoned(self, caller: str, thread: asyncio.Future[Any]) -> None:
        if not thread.cancelled():
            thread.exception()  # asyncio logs an exception that is never retrieved
        self._end(caller)

    def _begin(self, caller: str) -> None:
        self._free -= 1
        self._running[caller] = self._running.get(caller, 0) + 1

    def _end(self, caller: str) -> None:
        self._free += 1
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        if self._waiting:
            self._give_turns()

    def _may_start(self, caller: str) -> bool:
        return self._free > 0 and (not caller or self._running.get(caller, 0) < self._per_caller)

    def _give_turns(self) -> None:
        while (caller := next(filter(self._may_start, self._waiting), None)) is not None:
            queue = self._waiting.pop(caller)
            turn = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # moved behind the other callers
            if not turn.cancelled():
                self._begin(caller)
                turn.set_result(None)
