"""Windows: what was taken of something limited in the last seconds, in this process or over all replicas.

Those of all replicas are Redis's: one script looks at every limit that a request counts against, and takes
room in all of them or in none. Room is taken for the most that may be needed and corrected when it is known
what was. An entry has an id: a command that is sent twice counts once. What to do without Redis is for the
caller to decide.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from . import Script, Step

if TYPE_CHECKING:
    from .redis import Redis

_PREFIX = "bridgehead:window:"
_MICROSECONDS = 1e6

# KEYS: two for each limit, its entries by time and their amounts. ARGV: the entry's id (nothing where
# somebody only looks), the microseconds of the window, how many things are counted; then for each limit the
# most of each thing (0 where it is not limited) and what is asked of it. Totals are kept beside the amounts,
# as t1, t2 …, so that nothing is added up for each request.
_TAKE = Script(
    """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local id, window, things = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local function amounts_of(key, entry)
  local found = {}
  for word in (redis.call('HGET', key, entry) or ''):gmatch('%d+') do found[#found + 1] = tonumber(word) end
  return found
end
local totals, worst, blocking = {}, 0, 0
for n = 1, #KEYS / 2 do
  local entries, amounts = KEYS[2 * n - 1], KEYS[2 * n]
  local oldest = string.format('%.0f', now - window)
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', entries, '-inf', oldest)) do
    for thing, amount in ipairs(amounts_of(amounts, entry)) do
      redis.call('HINCRBY', amounts, 't' .. thing, 0 - amount) -- not -amount: Redis takes no -0
    end
    redis.call('HDEL', amounts, entry)
  end
  redis.call('ZREMRANGEBYSCORE', entries, '-inf', oldest)
  if id ~= '' and redis.call('HEXISTS', amounts, id) == 1 then return {0, 0} end
  for thing = 1, things do
    local place = 3 + (n - 1) * 2 * things + thing
    local most, asked = tonumber(ARGV[place]), tonumber(ARGV[place + things])
    local total = tonumber(redis.call('HGET', amounts, 't' .. thing) or '0')
    totals[#totals + 1] = total
    local excess = total + asked - most
    if most > 0 and asked > 0 and excess > 0 then
      local wait = window
      local oldest_first = redis.call('ZRANGE', entries, 0, 999, 'WITHSCORES')
      for place_of = 1, #oldest_first, 2 do
        excess = excess - (amounts_of(amounts, oldest_first[place_of])[thing] or 0)
        wait = oldest_first[place_of + 1] + window - now
        if excess <= 0 then break end
      end
      if wait > worst then worst, blocking = wait, n end
    end
  end
end
if worst > 0 or id == '' then return {math.ceil(worst), blocking, unpack(totals)} end
for n = 1, #KEYS / 2 do
  local asked = {}
  for thing = 1, things do
    asked[thing] = ARGV[3 + (n - 1) * 2 * things + things + thing]
    redis.call('HINCRBY', KEYS[2 * n], 't' .. thing, asked[thing])
  end
  redis.call('ZADD', KEYS[2 * n - 1], string.format('%.0f', now), id)
  redis.call('HSET', KEYS[2 * n], id, table.concat(asked, ' '))
  for _, key in ipairs({KEYS[2 * n - 1], KEYS[2 * n]}) do
    redis.call('PEXPIRE', key, math.ceil(window / 1000) + 1000)
  end
end
return {0, 0, unpack(totals)}
""",
    passes="answer[1] == 0",
)
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
"""When room was taken, and how much."""


class Window:
    """A sliding window over one thing that is limited, in this process."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self._seconds = seconds
        self._entries: deque[Entry] = deque()
        self._used = 0.0

    def left(self, now: float) -> float:
        """Return how much room there is."""
        self._forget(now)
        return max(0.0, self.most - self._used)

    def delay(self, amount: float, now: float) -> float:
        """Return the seconds until there is room for an amount; 0 where there is some now."""
        self._forget(now)
        excess = self._used + amount - self.most
        if excess <= 0:
            return 0.0
        for begun, taken in self._entries:
            excess -= taken
            if excess <= 0:
                return max(begun + self._seconds - now, 0.001)
        return self._seconds

    def take(self, amount: float, now: float) -> Entry:
        """Hold room for an amount."""
        entry = [now, amount]
        self._entries.append(entry)
        self._used += amount
        return entry

    def correct(self, entry: Entry, amount: float) -> None:
        """Put what was really used in the place of what was held."""
        if self._entries and entry[0] >= self._entries[0][0]:
            self._used += amount - entry[1]
        entry[1] = amount

    def is_idle(self, now: float) -> bool:
        """Tell whether nothing is in the window."""
        self._forget(now)
        return not self._entries

    def _forget(self, now: float) -> None:
        entries = self._entries
        oldest = now - self._seconds
        while entries and entries[0][0] <= oldest:
            self._used -= entries.popleft()[1]
        if not entries:
            self._used = 0.0


class Asked(Struct, frozen=True):
    """What is asked of one limit."""

    name: str
    most: Sequence[int]
    """Of each thing that is counted; 0 where it is not limited."""
    amounts: Sequence[int]


class Taken(Struct, frozen=True):
    """Room in some windows; or none, and when there is some."""

    entry: str
    names: tuple[str, ...]
    wait: float = 0.0
    """Seconds until there is room; 0 where it was taken."""
    blocking: int = 0
    """The place of the limit that is in the way."""
    totals: Sequence[int] = ()
    """What was taken before, of each thing, for one limit after the other."""


class SharedWindows:
    """The windows of all replicas."""

    def __init__(self, redis: Redis, seconds: float) -> None:
        self.redis = redis
        self._window = round(seconds * _MICROSECONDS)

    def prepare(self, limits: Sequence[Asked], *, is_look: bool = False) -> tuple[Taken, Step]:
        """Word what is asked; `read` completes what is taken, and `correct` gives it back."""
        taken = Taken("" if is_look else secrets.token_hex(12), tuple(one.name for one in limits))
        words = [taken.entry, self._window, len(limits[0].amounts)]
        for one in limits:
            words += [*one.most, *one.amounts]
        keys = [key for name in taken.names for key in (_PREFIX + name, _amounts_key(name))]
        return taken, Step(_TAKE, keys, words)

    def read(self, taken: Taken, answer: Sequence[int]) -> Taken:
        """Return what was taken, or when there is room."""
        wait, blocking, *totals = answer
        return Taken(taken.entry, taken.names, wait / _MICROSECONDS, max(0, blocking - 1), totals)

    async def take(self, limits: Sequence[Asked]) -> Taken:
        """Take room in all of them, or say when there is some. Raises StoreUnavailable or StoreError."""
        taken, step = self.prepare(limits)
        try:
            return self.read(taken, await self._run(step))
        except asyncio.CancelledError:  # it may have been taken, and nobody will use it
            self.correct(taken, [0] * len(limits[0].amounts))
            raise

    async def look(self, limit: Asked) -> Sequence[int]:
        """Return what is taken of each thing. Raises StoreUnavailable or StoreError."""
        taken, step = self.prepare([limit], is_look=True)
        return self.read(taken, await self._run(step)).totals

    async def _run(self, step: Step) -> Sequence[int]:
        answer: Sequence[int] = await self.redis.run(step.script, step.keys, step.words)
        return answer

    def correct(self, taken: Taken, amounts: Sequence[int | None]) -> None:
        """Put what was used in the place of what was taken; None leaves a thing as it is."""
        words = ["" if amount is None else amount for amount in amounts]
        keys = [_amounts_key(name) for name in taken.names]
        self.redis.tell_script(_CORRECT, keys, [taken.entry, *words])


def _amounts_key(name: str) -> str:
    return f"{_PREFIX}{name}:amounts"
