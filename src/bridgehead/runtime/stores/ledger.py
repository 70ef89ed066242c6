"""Ledger: the money that all replicas have committed, in Redis, in whole millionths of a dollar.

Money fails closed: without Redis nothing is committed, so nothing is sent. A Redis that was restarted or took
another's place may have forgotten something: for a few seconds nothing is committed either, and every replica
tells it the totals that it has seen, of which the highest counts. What was committed and never settled,
because a replica died, stays committed. A reservation has an id: a command that is sent twice counts once.

That does not cover a Redis that forgets in the same moment in which the only replica dies that could tell it.
Where there is a database as well, `allotments` covers that too.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .. import logs
from ..errors import StorageError
from .scripts import Script, Step, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from .redis import Redis

MILLIONTHS = 1_000_000
RESTORE_SECONDS = 3.0
"""How long replicas restore their totals to a restarted Redis before it commits money."""
KEEP_SECONDS = 40 * 24 * 60 * 60
"""How long totals are kept: longer than a month."""
EVERYBODY = ""
PREFIX = "bridgehead:budget:"
_MOST_SEEN = 10_000
_MOST_UNSETTLED = 10_000
_MOST_AT_ONCE = 500
_AGAIN_SECONDS = 0.1
_STOP_SECONDS = 1.0
_log = logs.logger("stores.ledger")

# KEYS: the mark of a memory, the reservation, then one counter for each total.
# ARGV: milliseconds to restore, seconds to keep, the amount, then the highest total that we have seen of each
# counter, then for each its limit, or -1, and last the id of the server's run. A server that was restarted or
# that took another's place may have lost what it acknowledged last, whatever it writes to its disk.
_COMMON = """
local counters = #KEYS - 2
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local run, open_at = (redis.call('GET', KEYS[1]) or ''):match('^(%w+) (%d+)$')
if run ~= ARGV[#ARGV] then
  open_at = now + tonumber(ARGV[1])
  redis.call('SET', KEYS[1], ARGV[#ARGV] .. ' ' .. string.format('%.0f', open_at))
end
local wait = math.max(0, tonumber(open_at) - now)
local totals = {}
for n = 1, counters do
  totals[n] = tonumber(redis.call('GET', KEYS[n + 2]) or '0')
  local seen = tonumber(ARGV[n + 3])
  if wait > 0 and seen > totals[n] then
    totals[n] = seen
    redis.call('SET', KEYS[n + 2], string.format('%.0f', seen), 'EX', ARGV[2])
  end
end
"""
_LOOK = Script(_COMMON + "return {wait, -1, unpack(totals)}", with_run_id=True)
_RESERVE = Script(
    _COMMON
    + """
if wait > 0 then return {wait, -1, unpack(totals)} end
if redis.call('EXISTS', KEYS[2]) == 1 then return {0, 0, unpack(totals)} end
for n = 1, counters do
  local limit = tonumber(ARGV[n + 3 + counters])
  if limit >= 0 and totals[n] + ARGV[3] > limit then return {0, n, unpack(totals)} end
end
redis.call('SET', KEYS[2], ARGV[3], 'EX', ARGV[2])
for n = 1, counters do
  totals[n] = redis.call('INCRBY', KEYS[n + 2], ARGV[3])
  redis.call('EXPIRE', KEYS[n + 2], ARGV[2])
end
return {0, 0, unpack(totals)}
""",
    passes="answer[1] == 0 and answer[2] == 0",
    with_run_id=True,
)
_SETTLE = Script("""
local reserved = redis.call('GET', KEYS[1])
if not reserved then return 0 end
redis.call('DEL', KEYS[1])
local change = ARGV[1] - reserved
for n = 2, #KEYS do redis.call('INCRBY', KEYS[n], string.format('%.0f', change)) end
return change
""")


class Counter(Struct, frozen=True):
    """One total: of a day or a month, of a client or of everybody."""

    period: str
    client: str = EVERYBODY

    @property
    def key(self) -> str:
        """Where it is kept."""
        return f"{PREFIX}{self.period}:{self.client}"

    @property
    def ceiling_key(self) -> str:
        """Where the total is kept up to which money was allotted, where a durable store does that."""
        return f"bridgehead:ceiling:{self.period}:{self.client}"


class Committed(Struct, frozen=True):
    """What is committed of each total, and which of them is in the way."""

    dollars: dict[Counter, float]
    exceeded: Counter | None = None
    wait: float | Callable[[], Awaitable[None]] = 0.0
    """Where nothing was committed yet: the seconds to wait before asking again, or what to do first."""


def counters_of(day: str, client: str) -> tuple[Counter, ...]:
    """Return every total that a client's spending of a day counts in."""
    periods = (day, day[:7])
    return (*(Counter(period) for period in periods), *(Counter(period, client) for period in periods))


class Expense:
    """What may be spent on a request, and the totals that it counts in. All amounts are in millionths."""

    def __init__(self, day: str, client: str, dollars: float, limits: Mapping[Counter, float]) -> None:
        self.day, self.client, self.dollars = day, client, dollars
        self.amount = to_millionths(dollars)
        self.counters = counters_of(day, client)
        self.bounds = [math.floor(limits[one] * MILLIONTHS) if one in limits else -1 for one in self.counters]
        """The limit of each total; -1 where there is none."""


class SharedLedger:
    """The money of all replicas."""

    most_tries = 3
    """How often a claim waits for a restarted Redis."""
    gives_up = "Redis keeps restarting."

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self._seen: OrderedDict[Counter, int] = OrderedDict()
        """The last total seen of each, to restore to a restarted Redis."""
        self._unsettled: dict[str, tuple[tuple[Counter, ...], int]] = {}
        """Reservations whose settlement is not in Redis yet."""
        self._leave: Callable[[], None] | None = None
        self._owes_totals = False
        """Whether Redis may not know the totals that were seen here."""
        self._telling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and tell a Redis that comes back what we know, at once."""
        await self.redis.start()
        self._leave = self.redis.notices.subscribe("budget", lambda _: None, self._tell_all)

    async def stop(self) -> None:
        """Let go of Redis, once it knows what was spent; one that is gone is not waited for."""
        if self._leave is not None:
            self._leave()
        if self._telling is not None:
            await asyncio.wait([self._telling], timeout=_STOP_SECONDS if self.redis.is_up else 0)
        if self._telling is not None:
            self._telling.cancel()
        await self.redis.close()

    def make_reservation(self, name: str, expense: Expense) -> Step:
        """Word a reservation for Redis."""
        return self._make_step(_RESERVE, name, expense.counters, expense.amount, expense.bounds)

    def read(self, expense: Expense, answer: Sequence[int]) -> Committed:
        """Return what is committed after a reservation was tried."""
        wait, exceeded, *totals = answer
        counters = expense.counters
        found = self._note(counters, totals)
        if wait:
            _log.warn("redis was restarted: restoring what was spent", milliseconds=wait)
            return Committed(found, wait=wait / 1000)
        return Committed(found, counters[exceeded - 1] if exceeded else None)

    async def look(self, counters: tuple[Counter, ...]) -> dict[Counter, float]:
        """Return the dollars that are committed of each total."""
        _, _, *totals = await self._look(counters)
        return self._note(counters, totals)

    def settle(self, name: str, day: str, client: str, dollars: float) -> None:
        """Put what a request cost in the place of what was committed for it, now or when Redis is back."""
        if len(self._unsettled) < _MOST_UNSETTLED:  # beyond that the worst case stays
            self._unsettled[name] = (counters_of(day, client), to_millionths(dollars))
        self._tell_soon()

    @staticmethod
    def _name_reservation(name: str) -> str:
        return f"{PREFIX}reserved:{name}"

    def _make_step(
        self, script: Script, name: str, counters: tuple[Counter, ...], amount: int, bounds: Sequence[int]
    ) -> Step:
        keys = [f"{PREFIX}memory", self._name_reservation(name), *(one.key for one in counters)]
        seen = [self._seen.get(one, 0) for one in counters]
        return Step(script, keys, [int(RESTORE_SECONDS * 1000), KEEP_SECONDS, amount, *seen, *bounds])

    async def _look(self, counters: tuple[Counter, ...]) -> list[int]:
        step = self._make_step(_LOOK, "", counters, 0, ())
        try:
            answer: list[int] = await self.redis.run(step.script, step.keys, step.words)
        except StoreUnavailable as problem:
            raise cannot_check(problem) from problem
        return answer

    def _note(self, counters: tuple[Counter, ...], totals: list[int]) -> dict[Counter, float]:
        for one, total in zip(counters, totals, strict=True):
            self._seen[one] = total
            self._seen.move_to_end(one)
        while len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        return {one: total / MILLIONTHS for one, total in zip(counters, totals, strict=True)}

    # --- what Redis has to know ----------------------------------------------------------------------------

    def _tell_all(self) -> None:
        self._owes_totals = True
        self._tell_soon()

    def _tell_soon(self) -> None:
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        """Write settlements of reservations, and the known totals, to Redis, as often as it takes.

        Word of a Redis that is back may come before it can be written to, and comes once.
        """
        has_failed = False
        try:
            while self._owes_totals or self._unsettled:
                try:
                    await self._tell_what_is_owed()
                except (StoreUnavailable, StoreError, StorageError) as problem:
                    if not has_failed:
                        _log.warn("what was spent could not be written to redis yet", problem=str(problem))
                    has_failed = True
                    await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            self._telling = None

    async def _tell_what_is_owed(self) -> None:
        if self._owes_totals:
            await self._tell_totals()
            self._owes_totals = False
        names = tuple(self._unsettled)[:_MOST_AT_ONCE]
        answers = await asyncio.gather(*map(self._tell_settlement, names), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _tell_settlement(self, name: str) -> None:
        counters, spent = self._unsettled[name]
        keys = [self._name_reservation(name), *(one.key for one in counters)]
        change: int = await self.redis.run(_SETTLE, keys, [spent])
        self._unsettled.pop(name, None)
        for one in counters:
            self._seen[one] = max(0, self._seen.get(one, 0) + change)

    async def _tell_totals(self) -> None:
        seen = tuple(self._seen)
        for begin in range(0, max(1, len(seen)), 100):  # once even with nothing to tell: the wait begins then
            await self._look(seen[begin : begin + 100])


class MoneyClaim:
    """Money that something needs before it may begin."""

    def __init__(self, ledger: SharedLedger, expense: Expense, judge: Callable[[Committed], None]) -> None:
        self.expense = expense
        self.name = ""
        """What the ledger knows the reservation by, once one was tried."""
        self._ledger = ledger
        self._judge = judge
        """Hears what is committed once it was tried, and raises where that was in vain."""
        self._tries = 0

    def prepare(self) -> Step:
        """Ask for it under a new name."""
        self.name = secrets.token_hex(12)
        return self._ledger.make_reservation(self.name, self.expense)

    def accept(self, answer: Any, deadline: float) -> float | Awaitable[None]:
        """Hold it, or wait until it can be asked for again; without Redis no money is spent."""
        del deadline
        if isinstance(answer, StoreUnavailable):
            raise cannot_check(answer) from answer
        if isinstance(answer, Exception):
            raise answer
        found = self._ledger.read(self.expense, answer)
        if not found.wait:
            self._judge(found)
            return 0.0
        self._tries += 1
        if self._tries >= self._ledger.most_tries:
            raise StorageError(self._ledger.gives_up)
        return found.wait() if callable(found.wait) else found.wait

    def give_back(self) -> None:
        """Give it back, where it was committed or may have been."""
        if self.name:
            self._ledger.settle(self.name, self.expense.day, self.expense.client, 0.0)


def cannot_check(problem: Exception) -> StorageError:
    """Say that no money is spent, because nobody knows what is left."""
    return StorageError(f"The budget cannot be checked, so no money is spent: {problem}")


def to_millionths(dollars: float) -> int:
    """Round up: what is committed is never less than what is spent."""
    return math.ceil(round(dollars * MILLIONTHS, 6))
