"""A store of allotments that a test looks into."""

import asyncio
from collections.abc import Mapping, Sequence

from bridgehead.runtime.stores.allotments import Allotment, Request
from bridgehead.runtime.stores.ledger import Counter


class AllotmentsInMemory:
    """A store that a test looks into, and that can fail or take its time."""

    def __init__(self) -> None:
        self.asked: list[list[Request]] = []
        self.allotted: dict[Counter, int] = {}
        self.taken: list[dict[Counter, int]] = []
        self.problem: Exception | None = None
        self.is_closed = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def allot(self, requests: Sequence[Request]) -> list[Allotment]:
        self.asked.append(list(requests))
        await self.may_answer.wait()
        if self.problem is not None:
            raise self.problem
        return [self._allot(one) for one in requests]

    def _allot(self, one: Request) -> Allotment:
        begin = max(one.known, self.allotted.get(one.counter, 0))
        self.allotted[one.counter] = max(begin, min(one.limit, begin + one.portion))
        return Allotment(one.counter, begin, self.allotted[one.counter])

    async def take_back(self, amounts: Mapping[Counter, int]) -> None:
        self.taken.append(dict(amounts))
        for counter, amount in amounts.items():
            self.allotted[counter] -= amount

    async def look(self, counters: Sequence[Counter]) -> dict[Counter, int]:
        if self.problem is not None:
            raise self.problem
        return {one: self.allotted.get(one, 0) for one in counters}

    async def close(self) -> None:
        self.is_closed = True
        self.may_answer.set()
