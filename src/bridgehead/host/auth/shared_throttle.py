"""Shared throttle: requests per minute of each caller, counted over all replicas.

Every limited request runs one script on Redis, which decides (GCRA). The client joins the scripts of one loop
turn into one round trip. While Redis is down each process counts for itself, or rejects everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridgehead.runtime import logs
from bridgehead.runtime.stores import Script, StoreError, StoreUnavailable

from .throttle import Throttle

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

_MICROSECONDS = 1e6

log = logs.logger("host.limits")
_CLOSED_SECONDS = 1.0
"""Retry-After while Redis is down and the throttle fails closed."""

# GCRA keeps one number per caller: the time at which its bucket is full again. A request adds one interval to
# it and passes if that stays within a full bucket from now. Everything is in whole microseconds of Redis's
# clock: the clocks of replicas need not agree, and a bucket of N holds N without rounding errors. A request
# that is sent again after a broken connection may be counted twice. Its caller then has one request less,
# which is cheaper than remembering the id of every request.
TAKE = Script("""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = math.max(1, math.floor(60000000 / ARGV[1]))
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + interval
local wait = full_at - now - interval * ARGV[1]
if wait > 0 then return wait end
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000) + 1000)
return 0
""")
"""Takes one request from the bucket KEYS[1] of ARGV[1] per minute; returns 0, or the microseconds to wait."""


class SharedThrottle:
    """Buckets by name, shared through Redis."""

    def __init__(self, redis: Redis, local: Throttle, *, fails_closed: bool) -> None:
        self._redis = redis
        self._local = local
        self._fails_closed = fails_closed
        """Whether nothing passes while Redis is down; otherwise `local` decides."""
        self.without_redis = 0
        """Requests that were decided without Redis."""

    async def take(self, name: str, per_minute: int) -> float:
        """Take one request and return 0; or, if none is left, return the seconds until there is one."""
        try:
            microseconds = await self._redis.run(TAKE, [f"bridgehead:limit:{name}"], (per_minute,))
        except (StoreUnavailable, StoreError) as problem:
            if isinstance(problem, StoreError):  # the key holds something else than a bucket
                log.warn("the limit of a caller cannot be read", caller=name, problem=str(problem))
            self.without_redis += 1
            return _CLOSED_SECONDS if self._fails_closed else self._local.take(name, per_minute)
        return float(microseconds / _MICROSECONDS)
