"""Turns: heavy work of which little may run at once, shared fairly between callers.

A semaphore serves whoever asked first, so a caller that asks a hundred times makes everybody else wait for
all of it. Here a caller has one piece of work running, and its next one queues behind those of the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .threads import current_worker


class Turns:
    """At most `limit` pieces of work at once, one of each caller; without a caller, only `limit` counts."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._running: set[str] = set()
        """Callers that have their turn."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By caller, in the order of their turns."""

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn of the current caller, and keep it for the block."""
        _, caller = current_worker.get()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._give_turns()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled():  # it had its turn, even if the task was cancelled before it ran again
                self._free += 1
                self._running.discard(caller)
                self._give_turns()

    def _give_turns(self) -> None:
        while self._free:
            caller = next((one for one in self._waiting if one not in self._running), None)
            if caller is None:
                return
            queue = self._waiting.pop(caller)
            turn = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # behind the others
            if not turn.cancelled():
                self._free -= 1
                if caller:
                    self._running.add(caller)
                turn.set_result(None)
