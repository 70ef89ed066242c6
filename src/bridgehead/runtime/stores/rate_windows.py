"""Rate windows: sliding windows of requests and tokens, in this process or over all replicas.

A caller reserves the worst case before a request and corrects it to the actual amount afterwards. Over all
replicas the windows are in Redis: one script checks every limit that a request counts against, and reserves
in all of them or in none. The caller decides what to do without Redis.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from . import Script

if TYPE_CHECKING:
    from .redis import Redis

_PREFIX = "bridgehead:window:"
_MICROSECONDS = 1e6

# KEYS: two for each limit, a sorted set of its entries by time and a hash of their amounts.
# ARGV: the entry's id (empty to look without taking), the number of quantities (requests, tokens); then for
# each limit its window in microseconds, the limit of each quantity (0: unlimited) and its amount.
# The hash also holds running totals as t1, t2 …, so that no request adds up the whole window. Time is Redis's
# own, so replicas need no synchronised clocks. An id that exists already comes from a pipeline that was sent
# twice: it counts once.
# Returns the wait in microseconds (0: taken), the limit that blocks (counted from 1), and the totals before.
_TAKE = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local id, things = ARGV[1], tonumber(ARGV[2])
local function amounts_of(key, entry)
  local amounts = {}
  local kept = redis.call('HGET', key, entry) or ''
  for word in kept:gmatch('%d+') do amounts[#amounts + 1] = tonumber(word) end
  return amounts
end
local function arg(n, place) return tonumber(ARGV[2 + (n - 1) * (1 + 2 * things) + place]) end
local totals, worst, blocking = {}, 0, 0
for n = 1, #KEYS / 2 do
  local entries, amounts, window = KEYS[2 * n - 1], KEYS[2 * n], arg(n, 1)
  local oldest = string.format('%.0f', now - window)
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', entries, '-inf', oldest)) do
    for thing, amount in ipairs(amounts_of(amounts, entry)) do
      redis.call('HINCRBY', amounts, 't' .. thing, 0 - amount) -- not -amount: Redis rejects -0
    end
    redis.call('HDEL', amounts, entry)
  end
  redis.call('ZREMRANGEBYSCORE', entries, '-inf', oldest)
  -- The same pipeline, sent twice.
  if id ~= '' and redis.call('HEXISTS', amounts, id) == 1 then return {0, 0} end
  for thing = 1, things do
    local limit, asked = arg(n, 1 + thing), arg(n, 1 + things + thing)
    local total = tonumber(redis.call('HGET', amounts, 't' .. thing) or '0')
    totals[#totals + 1] = total
    local excess = total + asked - limit
    if limit > 0 and asked > 0 and excess > 0 then
      -- Wait until enough of the oldest entries have left the window. At most 1000 are looked at, so that a
      -- refusal stays cheap; the wait may then be too short, and the caller asks again.
      local wait = window
      local oldest_first = redis.call('ZRANGE', entries, 0, 999, 'WITHSCORES')
      for place = 1, #oldest_first, 2 do
        excess = excess - (amounts_of(amounts, oldest_first[place])[thing] or 0)
        wait = oldest_first[place + 1] + window - now
        if excess <= 0 then break end
      end
      if wait > worst then worst, blocking = wait, n end
    end
  end
end
-- Nothing has been taken so far: one full limit refuses the request in all of them.
if worst > 0 or id == '' then return {math.ceil(worst), blocking, unpack(totals)} end
for n = 1, #KEYS / 2 do
  local asked = {}
  for thing = 1, things do
    asked[thing] = ARGV[2 + (n - 1) * (1 + 2 * things) + 1 + things + thing]
    redis.call('HINCRBY', KEYS[2 * n], 't' .. thing, asked[thing])
  end
  redis.call('ZADD', KEYS[2 * n - 1], string.format('%.0f', now), id)
  redis.call('HSET', KEYS[2 * n], id, table.concat(asked, ' '))
  -- A second longer than the window, so that the keys of an idle limit remove themselves.
  for _, key in ipairs({KEYS[2 * n - 1], KEYS[2 * n]}) do
    redis.call('PEXPIRE', key, math.ceil(arg(n, 1) / 1000) + 1000)
  end
end
return {0, 0, unpack(totals)}
""")
# KEYS: the hash of each limit. ARGV: the entry's id, then the amount used of each quantity; empty leaves it
# unchanged, and so does an amount of 0 taken, which was not limited. Running it twice changes nothing: it
# moves the total by the difference to the stored amount.
_CORRECT = Script("""
for n = 1, #KEYS do
  local kept = redis.call('HGET', KEYS[n], ARGV[1])
  if kept then
    local used, thing = {}, 0
    for word in kept:gmatch('%d+') do
      thing = thing + 1
      local amount = ARGV[1 + thing]
      if amount == '' or tonumber(word) == 0 then amount = word end
      used[thing] = amount
      redis.call('HINCRBY', KEYS[n], 't' .. thing, amount - word)
    end
    redis.call('HSET', KEYS[n], ARGV[1], table.concat(used, ' '))
  end
end
""")


Entry = list[float]
"""The time of a reservation, and its amount."""


class Window:
    """A sliding window over one limited quantity, in this process."""

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit = limit
        self._seconds = seconds
        self._entries: deque[Entry] = deque()
        self._used = 0.0

    def left(self, now: float) -> float:
        """Return the amount that is still available."""
        self._forget(now)
        return max(0.0, self.limit - self._used)

    def delay(self, amount: float, now: float) -> float:
        """Return the seconds until an amount can be reserved; 0 if it can be now."""
        self._forget(now)
        excess = self._used + amount - self.limit
        if excess <= 0:
            return 0.0
        for begun, taken in self._entries:
            excess -= taken
            if excess <= 0:
                return max(begun + self._seconds - now, 0.001)
        return self._seconds

    def take(self, amount: float, now: float) -> Entry:
        """Reserve an amount; it need not be available."""
        entry = [now, amount]
        self._entries.append(entry)
        self._used += amount
        return entry

    def correct(self, entry: Entry, amount: float) -> None:
        """Replace the amount taken by the amount used."""
        # An entry that has left the window is no longer in the total.
        if self._entries and entry[0] >= self._entries[0][0]:
            self._used += amount - entry[1]
        entry[1] = amount

    def is_idle(self, now: float) -> bool:
        """Return whether the window is empty."""
        self._forget(now)
        return not self._entries

    def _forget(self, now: float) -> None:
        entries = self._entries
        oldest = now - self._seconds
        while entries and entries[0][0] <= oldest:
            self._used -= entries.popleft()[1]
        if not entries:
            self._used = 0.0  # clears the rounding errors of many additions


class Asked(Struct, frozen=True):
    """What to reserve in the window of one limit."""

    name: str
    seconds: float
    """The length of its window."""
    limits: Sequence[int]
    """The limit of each counted quantity; 0 if unlimited."""
    amounts: Sequence[int]


class Taken(Struct, frozen=True):
    """A reservation in one or more windows, or the seconds until it can be made."""

    entry: str
    names: tuple[str, ...]
    wait: float = 0.0
    """Seconds; 0 if the reservation was made."""
    blocking: int = 0
    """The index of the limit that blocks."""
    totals: Sequence[int] = ()
    """The amounts taken before, of each quantity, limit by limit."""


class SharedWindows:
    """The windows of all replicas. Every method raises StoreUnavailable or StoreError."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def take(self, asked: Sequence[Asked]) -> Taken:
        """Reserve under all limits, or under none; return the reservation or how long to wait."""
        entry = secrets.token_hex(12)
        try:
            return await self._run(entry, asked)
        except asyncio.CancelledError:
            # The script may have run anyway: release the unused reservation.
            names = tuple(limit.name for limit in asked)
            self.correct(Taken(entry, names), [0] * len(asked[0].amounts))
            raise

    async def look(self, asked: Asked) -> Sequence[int]:
        """Return the amount taken of each quantity."""
        return (await self._run("", [asked])).totals

    async def _run(self, entry: str, asked: Sequence[Asked]) -> Taken:
        words: list[str | int] = [entry, len(asked[0].amounts)]
        for limit in asked:
            words += [round(limit.seconds * _MICROSECONDS), *limit.limits, *limit.amounts]
        names = tuple(limit.name for limit in asked)
        keys = [key for name in names for key in (_PREFIX + name, _amounts_key(name))]
        wait, blocking, *totals = await self._redis.run(_TAKE, keys, words)
        return Taken(entry, names, wait / _MICROSECONDS, max(0, blocking - 1), totals)

    def correct(self, taken: Taken, amounts: Sequence[int | None]) -> None:
        """Replace the amounts taken by those used, without waiting; None leaves a quantity unchanged."""
        words = ["" if amount is None else amount for amount in amounts]
        keys = [_amounts_key(name) for name in taken.names]
        self._redis.tell_script(_CORRECT, keys, [taken.entry, *words])


def _amounts_key(name: str) -> str:
    return f"{_PREFIX}{name}:amounts"
