"""Shared throttle: how often a caller may ask, over all replicas: together they let through what one would.

The bucket is Redis's, kept as the moment at which it will be full again (GCRA). Who asks in one turn of the
loop asks with one command, and while the bucket is far from empty, that takes a few more for the requests of
the next moment, which then need no round trip; those that nobody used are given back. A request that comes
while the bucket was last seen more than half full does not wait either: Redis is told, and until it has
answered, no second one passes like that. So a replica lets through one more than there is at most. Below that
the bucket is counted one by one, so no replica holds what another could use.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
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
_CLOSED_SECONDS = 1.0
"""When to ask again where nothing is let through because Redis is gone."""

TAKE = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, needed = 60000000 / ARGV[1], tonumber(ARGV[2])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local left = math.floor((60000000 - (full_at - now)) / interval + 0.000001)
local ahead = math.min(tonumber(ARGV[3]), math.floor((left - needed) / tonumber(ARGV[4])))
local taken = math.min(left, needed + math.max(ahead, 0))
if taken > 0 then
  full_at = full_at + taken * interval
  redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000) + 1000)
end
return {taken, math.max(0, math.ceil(full_at + interval - 60000000 - now)), left - taken}
""")
"""Takes up to so many, and some ahead; returns how many, the microseconds until there is one more, and how
many are left."""

GIVE_BACK = Script("""
local full_at = redis.call('GET', KEYS[1])
if full_at then
  redis.call('SET', KEYS[1], string.format('%.0f', full_at - ARGV[2] * 60000000 / ARGV[1]), 'KEEPTTL')
end
""")


class _Bucket:
    """One caller, as this process sees it."""

    __slots__ = ("ahead", "left", "per_minute", "timer", "waiting")

    def __init__(self) -> None:
        self.per_minute = 0
        self.ahead = 0
        """Requests that were taken and not used yet."""
        self.left = 0
        """What all replicas had left when Redis was last asked; 0 while it is being asked."""
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
        bucket = self._buckets.get(name)
        if bucket is None or bucket.per_minute != per_minute:
            return False
        if bucket.ahead:
            bucket.ahead -= 1
            return True
        if bucket.left * 2 <= per_minute or not self._redis.is_up:
            return False
        self._ask(name, bucket, on_trust=1)
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
            self.without_redis += 1
            return _CLOSED_SECONDS if self._fails_closed else self._local.take(name, per_minute)

    def _bucket(self, name: str, per_minute: int) -> _Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket()
            if len(self._buckets) > _MOST_NAMES:
                self._buckets.popitem(last=False)
        bucket.per_minute = per_minute
        return bucket

    def _ask(self, name: str, bucket: _Bucket, on_trust: int = 0) -> None:
        """Ask once for everybody who waits, and for those who did not."""
        asking, bucket.waiting, bucket.left = bucket.waiting, deque(), 0
        words = (bucket.per_minute, len(asking) + on_trust, MOST_AHEAD, _AHEAD_SHARE)
        answer = self._redis.run(TAKE, [_key(name)], words)
        answer.add_done_callback(lambda done: self._hand_out(name, bucket, asking, done, on_trust))

    def _hand_out(
        self,
        name: str,
        bucket: _Bucket,
        asking: deque[asyncio.Future[float]],
        answer: asyncio.Future[tuple[int, int, int]],
        on_trust: int,
    ) -> None:
        failure = answer.exception()
        taken, wait, bucket.left = (0, 0, 0) if failure is not None else answer.result()
        taken = max(0, taken - on_trust)
        for one in asking:
            if one.done():  # its client has left, and the request counts all the same
                continue
            if failure is not None:
                one.set_exception(failure)
            elif taken > 0:
                taken -= 1
                one.set_result(0.0)
            else:
                one.set_result(max(wait, 1) / _MICROSECONDS)
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
