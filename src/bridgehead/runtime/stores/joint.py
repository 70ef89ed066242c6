"""Joint: several things that something needs of Redis before it may begin, asked for in one round trip.

They are asked in order, and one that is not granted keeps those behind it from being asked. One that has to
wait, for a time or for something to happen, is asked again, with those behind it; one that is refused gives
back what the others have taken.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .scripts import Step, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from .redis import Redis


class Claim(Protocol):
    """One thing that is needed."""

    def prepare(self) -> Step | None:
        """Word it for Redis, under a new id; None where Redis has no part in it."""

    def accept(self, answer: Any, deadline: float) -> float | Awaitable[None]:
        """Take the answer, which is an exception where Redis cannot be used, or None where it was not asked.

        Returns 0 where it is granted, or what to wait for before it is asked again: seconds, or something
        that has to happen first. Raises where it is refused.
        """

    def give_back(self) -> None:
        """Give back what was taken, or may have been."""


class Joint:
    """Claims that belong to one piece of work."""

    def __init__(self, redis: Redis, claims: Iterable[Claim]) -> None:
        self._redis = redis
        self._left = deque(claims)
        self._granted: list[Claim] = []
        self._steps: deque[Step | None] = deque()
        """What was asked for each of those that are left; None where Redis was not asked."""
        self._is_unsure = False
        """Whether something was asked of which nobody knows what became of it."""
        self._answers: deque[Any] = deque()
        """What is known already, for the first of those that are left."""

    def prepare(self) -> list[Step]:
        """Word all that is left. Where somebody else asks, `receive` takes the answers."""
        if self._is_unsure:
            for claim in self._left:
                claim.give_back()
        self._is_unsure = True
        self._steps = deque(claim.prepare() for claim in self._left)
        return [step for step in self._steps if step is not None]

    def receive(self, answers: Sequence[Any]) -> None:
        """Take the answers to what was prepared; those of a chain may end early."""
        self._is_unsure = False
        self._answers.clear()
        given = iter(answers)
        for step in self._steps:
            try:
                self._answers.append(None if step is None else next(given))
            except StopIteration:
                return

    async def obtain(self, deadline: float, count: int | None = None) -> None:
        """Wait until so many more are granted, or all; what was taken is given back where one is not."""
        until = 0 if count is None else len(self._left) - count
        try:
            while len(self._left) > until:
                if not self._answers:
                    await self._ask()
                wait = self._left[0].accept(self._answers.popleft(), deadline)
                if wait:
                    await self._wait(wait)
                else:
                    self._granted.append(self._left.popleft())
                    self._steps.popleft()
        except BaseException:
            self.give_back()
            raise

    async def _wait(self, wait: float | Awaitable[None]) -> None:
        await (asyncio.sleep(wait) if isinstance(wait, float | int) else wait)
        if self._steps[0] is None:  # those behind it may be taken already: only this one is asked again
            self._answers.appendleft(None)
        else:
            self._answers.clear()

    async def _ask(self) -> None:
        steps = self.prepare()
        if not steps:
            self.receive([])
            return
        try:
            self.receive(await self._redis.run_steps(steps))
        except (StoreUnavailable, StoreError) as problem:
            self.receive([problem] * len(steps))

    def give_back(self) -> None:
        """Give everything back, once."""
        claims = [*self._granted, *self._left]
        self._granted, self._left, self._answers = [], deque(), deque()
        for claim in claims:
            claim.give_back()
