"""Retrying: tries again what failed in passing, a few times, within a deadline.

How long to wait is what the service says, in any of the forms of Retry-After, or else a growing delay. What
can be tried again is the error's to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import TypeVar

from msgspec import Struct

from bridgehead.runtime.backoff import Backoff
from bridgehead.runtime.clock import Clock

from ..errors import MercuryError

T = TypeVar("T")


class Retries(Struct, frozen=True):
    """How often, and how long to wait in between."""

    most: int
    backoff: Backoff
    clock: Clock
    draw: Callable[[], float]

    async def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        deadline: float,
        on_retry: Callable[[MercuryError, float], None],
    ) -> T:
        """Try until it succeeds, cannot succeed, was tried often enough, or would end after the deadline."""
        tries = 0
        while True:
            try:
                return await attempt()
            except MercuryError as error:
                wait = self._wait(error, tries)
                if wait is None or self.clock.monotonic() + wait >= deadline:
                    raise
                on_retry(error, wait)
            tries += 1
            await asyncio.sleep(wait)

    def _wait(self, error: MercuryError, tries: int) -> float | None:
        if not error.is_transient or tries >= self.most:
            return None
        if error.retry_after is not None:
            return error.retry_after
        return min(self.backoff.delay(tries, self.draw), self.backoff.most)


def retry_after(milliseconds: str | None, value: str | None, now: float) -> float | None:
    """Read `retry-after-ms` and `Retry-After` (seconds or a date) as seconds from now, if they can be."""
    for text, unit in ((milliseconds, 1000.0), (value, 1.0)):
        try:
            seconds = float(text or "") / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        return max(0.0, parsedate_to_datetime(value or "").timestamp() - now)
    except ValueError:
        return None
