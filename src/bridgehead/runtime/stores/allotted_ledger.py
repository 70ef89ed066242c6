"""Allotted ledger: the money of all replicas where a durable store watches over Redis.

Redis commits money only up to what the store has allotted to it (`allotments`). So a Redis that has forgotten
something needs nobody who remembers: it is allotted a new portion, beyond all that was ever allotted, and
calls need not wait until replicas have told it what they know.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..errors import BridgeError
from .allotments import (
    ENOUGH,
    MEMORY_KEY,
    READ_MEMORY,
    SURPLUS,
    AllotmentStore,
    Replenisher,
    Want,
    check_memory,
    make_keys,
)
from .ledger import KEEP_SECONDS, MILLIONTHS, Committed, Counter, Expense, SharedLedger, cannot_check
from .scripts import Script, Step

if TYPE_CHECKING:
    from .redis import Redis

_LACKING = 1
_MOST_PORTIONS = 10_000
_LOOK = Script(READ_MEMORY + "return show(0, 0)", with_run_id=True)
# KEYS[2]: the reservation. ARGV: seconds to keep, the amount, and the limit of each counter, or -1.
_RESERVE = Script(
    READ_MEMORY
    + """
if values[2] then return show(0, 0) end
local lacking = false
for n = 1, counters do
  local limit, total = tonumber(ARGV[2 + n]), totals[n] + ARGV[2]
  if limit >= 0 and ceilings[n] and total > limit then return show(0, n) end
  lacking = lacking or limit >= 0 and (not ceilings[n] or total > ceilings[n])
end
if lacking then return show(1, 0) end
redis.call('SET', KEYS[2], ARGV[2] .. ' ' .. memory, 'EX', ARGV[1])
for n = 1, counters do
  totals[n] = redis.call('INCRBY', KEYS[2 + n], ARGV[2])
  redis.call('EXPIRE', KEYS[2 + n], ARGV[1])
end
return show(0, 0)
""",
    passes="answer[1] == 0 and answer[2] == 0",
    with_run_id=True,
)
# KEYS: the reservation, the totals, their ceilings. What another memory had committed is no part of a total.
_SETTLE = Script("""
local counters = (#KEYS - 1) / 2
local values = redis.call('MGET', unpack(KEYS))
local reserved, memory = (values[1] or ''):match('^(%d+) (%w+)$')
if not reserved then return {} end
redis.call('DEL', KEYS[1])
local change, lefts = string.format('%.0f', ARGV[1] - reserved), {}
for n = 1, counters do
  local ceiling, owner = (values[1 + counters + n] or ''):match('^(%d+) (%w+)$')
  lefts[n] = -1
  if values[1 + n] and (owner == nil or owner == memory) then
    lefts[n] = (ceiling or -1) - redis.call('INCRBY', KEYS[1 + n], change)
  end
end
return lefts
""")


class AllottedLedger(SharedLedger):
    """The money of all replicas, of which none is committed that was not allotted."""

    most_tries = 50
    """How often a claim waits for a portion, which other replicas may use up before it."""
    gives_up = "Other replicas spend money faster than it can be allotted."

    def __init__(self, redis: Redis, store: AllotmentStore) -> None:
        super().__init__(redis)
        self._store = store
        self._replenisher = Replenisher(redis, store)
        self._portions: dict[Counter, int] = {}
        """How much was asked for ahead of each total, in millionths; of others nothing goes back."""

    async def stop(self) -> None:
        """Let go of Redis and of the store."""
        await self._replenisher.stop()
        await super().stop()

    def make_reservation(self, name: str, expense: Expense) -> Step:
        """Word a reservation for Redis."""
        keys = make_keys(self._name_reservation(name), expense.counters)
        return Step(_RESERVE, keys, [KEEP_SECONDS, expense.amount, *expense.bounds])

    def read(self, expense: Expense, answer: Sequence[int]) -> Committed:
        """Return what is committed after a reservation was tried; it waits where a portion is used up."""
        check_memory(answer)
        state, exceeded, *numbers = answer
        counters, (totals, lefts) = expense.counters, _split(numbers)
        dollars = {one: total / MILLIONTHS for one, total in zip(counters, totals, strict=True)}
        if exceeded:
            return Committed(dollars, counters[exceeded - 1])
        amount = expense.amount if state == _LACKING else 0
        wants = [
            want
            for one, limit, total, left in zip(counters, expense.bounds, totals, lefts, strict=True)
            if limit >= 0 and not (want := Want(one, limit, amount, expense.amount)).is_met_by(total, left)
        ]
        self._note_portions(wants)
        if state == _LACKING:
            return Committed(dollars, wait=partial(self._replenish, wants))
        if wants:
            self._replenisher.replenish_soon(wants)
        return Committed(dollars)

    def _note_portions(self, wants: Sequence[Want]) -> None:
        if wants and len(self._portions) > _MOST_PORTIONS:
            self._portions.clear()
        for want in wants:
            self._portions[want.counter] = want.portion

    async def _replenish(self, wants: Sequence[Want]) -> None:
        try:
            await self._replenisher.replenish(wants)
        except BridgeError as problem:
            raise cannot_check(problem) from problem

    async def look(self, counters: tuple[Counter, ...]) -> dict[Counter, float]:
        """Return the dollars that are committed of each total; what is void counts as spent."""
        try:
            answer = await self.redis.run(_LOOK, make_keys(MEMORY_KEY, counters))
            check_memory(answer)
            totals, lefts = _split(answer[2:])
            unknown = [one for one, left in zip(counters, lefts, strict=True) if left < 0]
            allotted = await self._store.look(unknown) if unknown else {}
        except BridgeError as problem:
            raise cannot_check(problem) from problem
        return {
            one: max(total, allotted.get(one, 0)) / MILLIONTHS
            for one, total in zip(counters, totals, strict=True)
        }

    async def _tell_settlement(self, name: str) -> None:
        counters, spent = self._unsettled[name]
        keys = [self._name_reservation(name), *make_keys(MEMORY_KEY, counters)[2:]]
        lefts: list[int] = await self.redis.run(_SETTLE, keys, [spent])
        self._unsettled.pop(name, None)
        for one, left in zip(counters, lefts, strict=False):  # nothing where it was settled already
            portion = self._portions.get(one)
            if portion is not None and left > SURPLUS * portion:
                self._replenisher.give_back_later(one, ENOUGH * portion)

    async def _tell_totals(self) -> None:
        """Tell nothing: a Redis that has forgotten something is allotted a new portion."""


def _split(numbers: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the totals, and what is left of what was allotted of each, which is below 0 where none was."""
    half = len(numbers) // 2
    return numbers[:half], numbers[half:]
