"""Turns: heavy work of which little may run at once, shared fairly between callers.

A semaphore serves whoever asked first, so a caller that asks a hundred times makes everybody else wait for
all of it. Here a caller has little of its work running, and the next piece queues behind those of the others.
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
    """At most `limit` pieces of work at once, few of each caller; without a caller, only `limit` counts."""

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
        # Nobody is overtaken: those who wait have their share already, or no turn is free.
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
            # It had its turn, even if the task was cancelled before it ran again.
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
                return cast("T", await asyncio.shield(running))
            except asyncio.CancelledError:
                is_wanted = False  # work that still waits for a thread does not begin
                # The thread's own turn, in place of the one that ends with this block.
                _, caller = current_worker.get()
                self._begin(caller)
                running.add_done_callback(partial(self._end_abandoned, caller))
                raise

    def _end_abandoned(self, caller: str, thread: asyncio.Future[Any]) -> None:
        if not thread.cancelled():
            thread.exception()  # asyncio complains of one that nobody looked at
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
                self._waiting[caller] = queue  # behind the others
            if not turn.cancelled():
                self._begin(caller)
                turn.set_result(None)
