"""Allotments: the portions of each budget that a durable store hands to Redis, which commits nothing else.

The store counts for each limited total what it has ever allotted, up to the limit, and commits that before
it says so. A portion reaches one memory of Redis, once: so all that is committed in all of them together is
never more than what was allotted, whatever they forget. A memory is what one server has known without a gap.
When a server was restarted, emptied, or took another's place, what the old memory had left is void: a part of
the budget is lost then, and none is gained. An old master that others no longer see goes on with what it has.

A portion is large enough for several calls, and the next one is asked for before it is used up, so that a
call normally waits for Redis alone. What calls held and did not spend goes back after a while, so that little
of a budget is lost with a memory. Replicas take turns, so that they do not all ask for the same.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from .. import logs
from ..errors import BridgeError, StorageError
from .ledger import KEEP_SECONDS, PREFIX, Counter
from .scripts import Script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .redis import Redis

CALLS = 4
"""A portion is enough for so many calls beyond those that wait,"""
LEAST_SHARE, MOST_SHARE = 100, 20
"""but not less than a hundredth and not more than a twentieth of a limit."""
MEMORY_KEY = f"{PREFIX}allotments"
_TURN_KEY = f"{PREFIX}turn"
_TURN_SECONDS = 1.0
"""After which a replica that has the turn is taken for dead. Two that ask at once do no harm."""
_MOST_AT_ONCE = 500
"""Totals of one step: a script can name 8,000 keys at most."""
_AGAIN_SECONDS = 0.01
_MOST_WAIT = 5.0
_DELIVERY_SECONDS = 60 * 60
"""How long a delivery is tried, which is far less than Redis remembers that it was made."""
SURPLUS, ENOUGH = 4, 2
"""Beyond so many portions the rest goes back, down to so many."""
_GIVE_BACK_SECONDS = 2.0
"""After which it does, unless calls need it."""
_PAUSE_SECONDS = 1.0
"""How long nobody asks ahead after that has failed."""
_log = logs.logger("stores.allotments")

# KEYS: the memory, one further key, then for each counter its total, then for each its ceiling, which is the
# total up to which money was allotted to a memory. The last ARGV is the id of the server's run. That of its
# data changes when a replica is promoted, so a master that was demoted meanwhile is another one too.
READ_MEMORY = """
local counters = (#KEYS - 2) / 2
local about = redis.pcall('INFO', 'replication')
local data = type(about) == 'string' and about:match('master_replid:(%w+)')
if not data or ARGV[#ARGV] == '' then return {-1} end
local server = ARGV[#ARGV] .. data
local values = redis.call('MGET', unpack(KEYS))
local known, memory = (values[1] or ''):match('^(%w+) (%w+)$')
if known ~= server then
  local time = redis.call('TIME')
  memory = redis.sha1hex(server .. time[1] .. '.' .. time[2])
  redis.call('SET', KEYS[1], server .. ' ' .. memory)
end
local totals, ceilings = {}, {}
for n = 1, counters do
  local ceiling, owner = (values[2 + counters + n] or ''):match('^(%d+) (%w+)$')
  totals[n] = tonumber(values[2 + n] or '0')
  ceilings[n] = owner == memory and values[2 + n] and tonumber(ceiling)
end
local function show(...)
  local answer = {...}
  for n = 1, counters do answer[#answer + 1] = totals[n] end
  for n = 1, counters do
    answer[#answer + 1] = ceilings[n] and math.max(0, ceilings[n] - totals[n]) or -1
  end
  return answer
end
"""
_TAKE_TURN = Script(
    READ_MEMORY
    + """
if values[2] and values[2] ~= ARGV[1] then return {1} end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return show(0, memory)
""",
    with_run_id=True,
)
_END_TURN = Script("if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end")
# KEYS[2]: the delivery, so that one that is sent twice counts once. ARGV: the memory that it is for, seconds
# to keep all this, and for each counter from which total to which was allotted.
_DELIVER = Script(
    READ_MEMORY
    + """
if memory ~= ARGV[1] then return 0 end
if not redis.call('SET', KEYS[2], '1', 'NX', 'EX', ARGV[2]) then return 1 end
for n = 1, counters do
  local from, to = tonumber(ARGV[1 + 2 * n]), tonumber(ARGV[2 + 2 * n])
  local total, ceiling = math.max(from, totals[n]), to
  if ceilings[n] then
    ceiling = math.max(ceilings[n], to)
    total = ceiling - (ceilings[n] - totals[n] + to - from)
  end
  redis.call('SET', KEYS[2 + n], string.format('%.0f', total), 'EX', ARGV[2])
  redis.call('SET', KEYS[2 + counters + n], string.format('%.0f ', ceiling) .. memory, 'EX', ARGV[2])
end
return 1
""",
    with_run_id=True,
)

# ARGV: what may stay of each counter. Sent twice, the first one is lost.
_WITHDRAW = Script(
    READ_MEMORY
    + """
local amounts = {}
for n = 1, counters do
  amounts[n] = 0
  local surplus = ceilings[n] and ceilings[n] - totals[n] - ARGV[n] or 0
  if surplus > 0 then
    amounts[n] = surplus
    local ceiling = string.format('%.0f ', ceilings[n] - surplus) .. memory
    redis.call('SET', KEYS[2 + counters + n], ceiling, 'KEEPTTL')
  end
end
return amounts
""",
    with_run_id=True,
)


class Request(Struct, frozen=True):
    """What is asked of the store for one total, in millionths."""

    counter: Counter
    portion: int
    limit: int
    known: int
    """What is committed at least, whatever the store knows."""


class Allotment(Struct, frozen=True):
    """What the store allots of one total: from where to where, in millionths."""

    counter: Counter
    begin: int
    end: int


class AllotmentStore(Protocol):
    """Where it is durable how much was allotted."""

    async def allot(self, requests: Sequence[Request]) -> list[Allotment]:
        """Allot a portion of each, or what is left of it; it is committed when this returns."""

    async def take_back(self, amounts: Mapping[Counter, int]) -> None:
        """Take back what was allotted and is in no memory any more."""

    async def look(self, counters: Sequence[Counter]) -> dict[Counter, int]:
        """Return how much was allotted of each."""

    async def close(self) -> None:
        """Let go of it."""


class Want(Struct, frozen=True):
    """What calls need of one total, in millionths."""

    counter: Counter
    limit: int
    amount: int
    """What they wait for; nothing where it is asked for ahead."""
    most: int
    """The most that one of them can cost."""

    @property
    def portion(self) -> int:
        """How much to have at hand beyond what they wait for."""
        return max(self.limit // LEAST_SHARE, min(self.limit // MOST_SHARE, CALLS * self.most))

    def is_met_by(self, total: int, left: int) -> bool:
        """Tell whether Redis has enough, or can get no more."""
        if left < 0:
            return False
        return total + left >= self.limit or (left >= self.amount and 2 * left >= self.portion)

    def to_request(self, total: int, left: int) -> Request:
        """Word it for the store."""
        at_hand = max(left, 0)
        return Request(
            self.counter, max(0, self.amount - at_hand) + self.portion, self.limit, total + at_hand
        )

    def __add__(self, other: Want) -> Want:
        most, limit = max(self.most, other.most), max(self.limit, other.limit)
        return Want(self.counter, limit, self.amount + other.amount, most)


class _Delivery(Struct, frozen=True):
    """Portions on their way to a memory of Redis."""

    name: str
    memory: bytes
    allotments: list[Allotment]
    until: float
    """When to give it up."""


class Replenisher:
    """Brings portions from the store to Redis, for all who wait in this process at once."""

    def __init__(self, redis: Redis, store: AllotmentStore) -> None:
        self._redis = redis
        self._store = store
        self._wants: dict[Counter, Want] = {}
        """What is asked for next."""
        self._waiting: asyncio.Future[None] | None = None
        """Done when that is there."""
        self._undelivered: _Delivery | None = None
        """Portions of which nobody knows whether Redis has them."""
        self._task: asyncio.Task[None] | None = None
        self._pause_until = 0.0
        self._surplus: dict[Counter, int] = {}
        """What may stay in Redis of totals that have more than they need."""
        self._returning: asyncio.Task[None] | None = None

    async def replenish(self, wants: Iterable[Want]) -> None:
        """Wait until Redis has what is wanted, or can get no more of it."""
        await asyncio.shield(self._enqueue(wants))  # others wait for the same

    def replenish_soon(self, wants: Iterable[Want]) -> None:
        """Ask ahead of any need; a failure is met by whoever needs it."""
        if self._task is None and monotonic() >= self._pause_until:
            _ = self._enqueue(wants)

    def _enqueue(self, wants: Iterable[Want]) -> asyncio.Future[None]:
        for want in wants:
            known = self._wants.get(want.counter)
            self._wants[want.counter] = want if known is None else known + want
        loop = asyncio.get_running_loop()
        if self._waiting is None:
            self._waiting = loop.create_future()
            self._waiting.add_done_callback(asyncio.Future.exception)  # nobody need wait for it
        if self._task is None:
            self._task = loop.create_task(self._run())
        return self._waiting

    async def stop(self) -> None:
        """Ask for nothing more."""
        tasks = [task for task in (self._task, self._returning) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._store.close()

    async def _run(self) -> None:
        try:
            while self._waiting is not None:
                waiting, self._waiting = self._waiting, None
                wants, self._wants = tuple(self._wants.values()), {}
                await self._serve(waiting, wants)
        finally:
            self._task = None
            if self._waiting is not None:
                self._waiting.set_exception(_ending())

    async def _serve(self, waiting: asyncio.Future[None], wants: Sequence[Want]) -> None:
        try:
            for begin in range(0, len(wants), _MOST_AT_ONCE):
                await self._bring(wants[begin : begin + _MOST_AT_ONCE])
        except BridgeError as problem:
            self._pause_until = monotonic() + _PAUSE_SECONDS
            _log.warn("no money could be allotted", problem=str(problem))
            waiting.set_exception(problem)
        except BaseException:
            waiting.set_exception(_ending())
            raise
        else:
            waiting.set_result(None)

    async def _bring(self, wants: Sequence[Want]) -> None:
        late = self._undelivered
        if late is not None and monotonic() < late.until:
            await self._deliver(late)
        async with self._having_turn([want.counter for want in wants]) as (memory, totals, lefts):
            requests = [
                want.to_request(total, left)
                for want, total, left in zip(wants, totals, lefts, strict=True)
                if not want.is_met_by(total, left)
            ]
            if requests:
                allotments = await self._store.allot(requests)
                until = monotonic() + _DELIVERY_SECONDS
                await self._deliver(_Delivery(secrets.token_hex(12), memory, allotments, until))

    async def _deliver(self, delivery: _Delivery) -> None:
        """Give portions to the memory that they were asked for. Another one never gets them."""
        self._undelivered = delivery
        keys = make_keys(f"{PREFIX}delivered:{delivery.name}", [one.counter for one in delivery.allotments])
        ranges = [bound for one in delivery.allotments for bound in (one.begin, one.end)]
        words = [delivery.memory, KEEP_SECONDS, *ranges]
        await self._redis.run(_DELIVER, keys, words)
        self._undelivered = None

    def give_back_later(self, counter: Counter, enough: int) -> None:
        """Give back what Redis then has beyond that of a total: it would be lost with its memory."""
        self._surplus[counter] = enough
        if self._returning is None:
            self._returning = asyncio.get_running_loop().create_task(self._give_back())

    async def _give_back(self) -> None:
        try:
            while self._surplus:
                await asyncio.sleep(_GIVE_BACK_SECONDS)
                surplus = {one: self._surplus.pop(one) for one in tuple(self._surplus)[:_MOST_AT_ONCE]}
                await self._store.look(tuple(surplus))  # a store that is gone could not take it
                async with self._having_turn(tuple(surplus)):
                    await self._withdraw(surplus)
        except BridgeError as problem:
            _log.warn("money that was not spent could not be given back", problem=str(problem))
        finally:
            self._returning = None

    async def _withdraw(self, surplus: Mapping[Counter, int]) -> None:
        """Take it out of Redis first. What is lost on the way to the store is lost, and never there twice."""
        keys = make_keys(MEMORY_KEY, tuple(surplus))
        answer = await self._redis.run(_WITHDRAW, keys, [*surplus.values()])
        amounts = {counter: amount for counter, amount in zip(surplus, answer, strict=True) if amount > 0}
        if amounts:
            await self._store.take_back(amounts)

    @asynccontextmanager
    async def _having_turn(
        self, counters: Sequence[Counter]
    ) -> AsyncIterator[tuple[bytes, list[int], list[int]]]:
        """Keep other replicas from asking meanwhile; gives what Redis knows then."""
        name, end = secrets.token_hex(12), monotonic() + _MOST_WAIT
        keys, words = make_keys(_TURN_KEY, counters), [name, int(_TURN_SECONDS * 1000)]
        while (answer := await self._redis.run(_TAKE_TURN, keys, words))[0] == 1:
            if monotonic() >= end:
                raise StorageError("Other replicas ask for money all the time.")
            await asyncio.sleep(_AGAIN_SECONDS)
        check_memory(answer)
        try:
            _, memory, *numbers = answer
            yield memory, numbers[: len(counters)], numbers[len(counters) :]
        finally:
            self._redis.tell_script(_END_TURN, [_TURN_KEY], [name])


def make_keys(second: str, counters: Sequence[Counter]) -> list[str]:
    """Return the keys that a script with `READ_MEMORY` needs."""
    return [MEMORY_KEY, second, *(one.key for one in counters), *(one.ceiling_key for one in counters)]


def check_memory(answer: Sequence[int]) -> None:
    """Refuse a Redis that does not say whether it still knows what it knew."""
    if answer[0] < 0:
        raise StorageError(
            "Redis does not tell its replication id, so nobody knows whether it has lost something.",
            next_step="Allow its user the command INFO.",
        )


def _ending() -> StorageError:
    return StorageError("The server is ending.")
