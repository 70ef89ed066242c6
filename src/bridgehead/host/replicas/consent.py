"""Consent: which confirmations were used already, over all replicas.

A sealed confirmation can come to any replica, and each could be given it once. So each use is noted in Redis,
where a name stands only once. What cannot be noted counts as used: the client is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from bridgehead.runtime import logs
from bridgehead.runtime.stores import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

_LONGER_MILLISECONDS = 300_000
"""How much longer than it is good a name is kept: the clock of another replica may be behind."""

log = logs.logger("host.consent")


class ReplicatedConsent:
    """The confirmations that were used, of all replicas."""

    def __init__(self, redis: Redis, now: Callable[[], float]) -> None:
        self._redis = redis
        self._now = now

    async def use(self, nonce: str, expires: float) -> bool:
        """Tell whether a confirmation is used for the first time."""
        life = max(0, math.ceil((expires - self._now()) * 1000)) + _LONGER_MILLISECONDS
        try:
            answer = await self._redis.call("SET", f"bridgehead:consent:{nonce}", "1", "NX", "PX", life)
        except (StoreUnavailable, StoreError) as problem:
            log.warn("a confirmation cannot be checked, so it is refused", problem=str(problem))
            return False
        return answer is not None
