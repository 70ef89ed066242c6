"""Nonces: one-time use of sealed confirmations and sign-ins, over all processes of a service.

A sealed state can come back to any replica, and each would accept it once. So each nonce is inserted into
Redis, which refuses duplicates. If Redis fails, the nonce counts as used: the client is asked again. A single
process keeps its nonces in memory (`bridgehead.mcp.MemoryNonces`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from bridgehead.runtime import logs
from bridgehead.runtime.stores import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

_CLOCK_SKEW_MILLISECONDS = 300_000
"""How much longer than its validity a nonce stays in Redis: another replica's clock may be behind."""

log = logs.logger("host.nonces")


class RedisNonces:
    """The used nonces of all replicas."""

    def __init__(self, redis: Redis, now: Callable[[], float]) -> None:
        self._redis = redis
        self._now = now

    async def use(self, nonce: str, expires: float) -> bool:
        """Return whether the nonce is new; it stays used until it expires."""
        life = max(0, math.ceil((expires - self._now()) * 1000)) + _CLOCK_SKEW_MILLISECONDS
        try:
            # NX decides: of several replicas, one creates the key. A command sent again after a broken
            # connection finds its own key: the nonce counts as used, and the client is asked again.
            answer = await self._redis.call("SET", f"bridgehead:nonce:{nonce}", "1", "NX", "PX", life)
        except (StoreUnavailable, StoreError) as problem:
            log.warn("a nonce cannot be checked, so it is refused", problem=str(problem))
            return False
        return answer is not None

    async def is_used(self, nonce: str) -> bool:
        """Return whether the nonce was used; raises StoreUnavailable and StoreError."""
        return bool(await self._redis.call("EXISTS", f"bridgehead:nonce:{nonce}"))
