"""Shared throttle: how often a caller may ask, over all replicas: together they let through what one would.

The bucket is Redis's, kept as the moment at which it will be full again (GCRA). A request does not wait for
it while there was something left at the last look: it passes on trust, Redis is told, and until that has
answered, no second one passes like that. What passed on trust is taken even where nothing was left, as a
debt, so a replica lets through one more than there is at most, and not one more each time.

Others ask, all of one turn of the loop with one command. While the bucket is far from empty, a few more are
taken for the requests of the next moment, which then need no command at all; those that nobody used are given
back. Close to empty nothing is taken ahead, so no replica holds what another could use.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from time import monotonic
from typing import TYPE_CHECKING

from bridgehead.runtime.stores import Script, StoreUnavailable

from .throttle import Throttle

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

MOST_AHEAD = 16
"""Requests that are taken ahead at most,"""
_AHEAD_SHARE = 20
"""and not more than this part of what the bucket has left,"""
AHEAD_SECONDS = 0.1
"""for at most so long."""
_MOST_NAMES = 10_000
_MICROSECONDS = 1e6
_SHORTEST = 1e-6
"""What is waited for at least: nothing would mean that the request passes."""
_CLOSED_SECONDS = 1.0
"""When to ask again where nothing is let through because Redis is gone."""

TAKE = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, needed, trusted = 60000000 / ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local left = math.floor((60000000 - (full_at - now)) / interval + 0.000001) - trusted
local ahead = math.min(tonumber(ARGV[4]), math.floor((left - needed) / tonumber(ARGV[5])))
local taken = math.max(0, math.min(left, needed + math.max(ahead, 0)))
if taken + trusted > 0 then
  full_at = full_at + (taken + trusted) * interval
  redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000) + 1000)
end
return {taken, math.max(0, math.ceil(full_at + interval - 60000000 - now))}
""")
"""Takes up to so many, some ahead, and in any case those that passed on trust. Returns how many without the
latter, and the microseconds until there is one more, which are 0 where there is one."""

GIVE_BACK = Script("""
local full_at = redis.call('GET', KEYS[1])
if full_at then
  redis.call('SET', KEYS[1], string.format('%.0f', full_at - ARGV[2] * 60000000 / ARGV[1]), 'KEEPTTL')
end
""")


class _Bucket:
    """One caller, as this process sees it."""

    __slots__ = ("ahead", "asking", "next_at", "per_minute", "timer", "waiting")

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self.ahead = 0
        """Requests that were taken and not used yet."""
        self.asking = 0
        """How often Redis is being asked right now."""
        self.next_at = 0.0
        """When there is something left, as far as was known when Redis had answered last."""
        self.timer: asyncio.TimerHandle | None = None
        self.waiting: deque[asyncio.Future[float]] = deque()


class SharedThrottle:
    """Buckets by name, shared through Redis."""

    def __init__(self, redis: Redis, local: Throttle, *, fails_closed: bool) -> None:
        self._redis = redis
        self._local = local
        """What counts while Redis is gone, each process for itself, unless nothing is let through then."""
        self._fails_closed = fails_closed
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self.without_redis = 0
        """How often it was decided without Redis."""

    def take_now(self, name: str, per_minute: int) -> bool:
        """Take one without waiting: one that is here already, or on trust; False where that cannot be."""
        bucket = self._bucket(name, per_minute)
        if bucket.ahead:
            bucket.ahead -= 1
            return True
        if bucket.asking or bucket.next_at > monotonic() or not self._redis.is_up:
            return False
        self._ask(name, bucket, trusted=1)
        return True

    async def take(self, name: str, per_minute: int) -> float:
        """Take one, and return 0; or, where none is left, the seconds until there is one again."""
        if self.take_now(name, per_minute):
            return 0.0
        bucket = self._bucket(name, per_minute)
        answer: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        bucket.waiting.append(answer)
        if len(bucket.waiting) == 1:
            asyncio.get_running_loop().call_soon(self._ask, name, bucket)
        try:
            return await answer
        except StoreUnavailable:
            return self._take_without_redis(name, bucket)

    def _take_without_redis(self, name: str, bucket: _Bucket) -> float:
        self.without_redis += 1
        return _CLOSED_SECONDS if self._fails_closed else self._local.take(name, bucket.per_minute)

    def _bucket(self, name: str, per_minute: int) -> _Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(per_minute)
            if len(self._buckets) > _MOST_NAMES:
                self._buckets.popitem(last=False)
        bucket.per_minute = per_minute
        return bucket

    def _ask(self, name: str, bucket: _Bucket, trusted: int = 0) -> None:
        """Ask once for everybody who waits, and tell of those who did not."""
        asking, bucket.waiting = bucket.waiting, deque()
        bucket.asking += 1
        words = (bucket.per_minute, len(asking), trusted, MOST_AHEAD, _AHEAD_SHARE)
        answer = self._redis.run(TAKE, [_key(name)], words)
        answer.add_done_callback(lambda done: self._hand_out(name, bucket, asking, done, trusted))

    def _hand_out(
        self,
        name: str,
        bucket: _Bucket,
        asking: deque[asyncio.Future[float]],
        answer: asyncio.Future[tuple[int, int]],
        trusted: int,
    ) -> None:
        bucket.asking -= 1
        failure = answer.exception()
        if failure is None:
            taken, microseconds = answer.result()
            wait = microseconds / _MICROSECONDS
        else:
            taken, wait = 0, _CLOSED_SECONDS
            for _ in range(trusted):
                self._take_without_redis(name, bucket)
        bucket.next_at = monotonic() + wait if wait else 0.0
        taken, bucket.ahead = taken + bucket.ahead, 0
        for one in asking:
            if one.done():  # its client has left, and the request counts all the same
                continue
            if failure is not None:
                one.set_exception(failure)
            elif taken > 0:
                taken -= 1
                one.set_result(0.0)
            else:
                one.set_result(max(wait, _SHORTEST))
        if taken > 0:
            self._keep(name, bucket, taken)

    def _keep(self, name: str, bucket: _Bucket, ahead: int) -> None:
        bucket.ahead += ahead
        if bucket.timer is None:
            loop = asyncio.get_running_loop()
            bucket.timer = loop.call_later(AHEAD_SECONDS, self._give_back, name, bucket)

    def _give_back(self, name: str, bucket: _Bucket) -> None:
        bucket.timer = None
        unused, bucket.ahead = bucket.ahead, 0
        if unused:
            self._redis.tell_script(GIVE_BACK, [_key(name)], (bucket.per_minute, unused))


def _key(name: str) -> str:
    return f"bridgehead:limit:{name}"
