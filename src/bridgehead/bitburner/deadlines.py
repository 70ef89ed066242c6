"""Deadlines: the time limits of many calls, watched by one timer.

Nearly every call is answered long before its limit, so making and cancelling a timer for each would be work
for nothing. One timer looks after the earliest limit; when it rings, whatever is due is ended.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Deadlines:
    """The futures that wait, and until when."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due: dict[asyncio.Future[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, future: asyncio.Future[Any], when: float) -> None:
        """Let a future fail with TimeoutError at this time of the loop."""
        self._due[future] = when
        if self._timer is None or when < self._timer.when():
            self._wake(when)

    def end(self, future: asyncio.Future[Any]) -> None:
        """Forget a future; the timer stays, as it is cheaper to let it ring."""
        self._due.pop(future, None)

    def _wake(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._loop.time()
        for future, when in self._due.items():
            if when <= now and not future.done():
                future.set_exception(TimeoutError())
        later = [when for when in self._due.values() if when > now]
        if later:
            self._wake(min(later))
