"""Replica: what this process shares with others through Redis: changes, revocations, request limits."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bridgehead.mcp import Bridge
from bridgehead.runtime import logs
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.stores import open_redis

from ..auth.revocation import REVOCATION, follow_revocations
from ..auth.shared_throttle import SharedThrottle
from ..auth.throttle import Throttle
from ..auth.tokens import Tokens
from ..settings import HostSettings
from .changes import ChangeRelay

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

_NAME_BYTES = 6

log = logs.logger("host.replicas")


class Replica:
    """What this process shares with others through Redis."""

    def __init__(self, settings: HostSettings, redis: Redis) -> None:
        self._settings = settings
        self.redis = redis
        self.metrics = Metrics()
        redis.declare_metrics(self.metrics)
        self._changes = ChangeRelay(redis, secrets.token_hex(_NAME_BYTES))
        self.tokens: Tokens | None = None
        """Reloaded as soon as a token is revoked on any replica."""
        self._leave_revocations: Callable[[], None] = lambda: None

    async def start(self, bridges: Mapping[str, Bridge[Any]]) -> None:
        """Connect to Redis; without it the process serves alone until it is back."""
        await self.redis.start()
        self._changes.start(bridges)
        if self.tokens is not None:
            keys = self._settings.derive_keys(REVOCATION)
            self._leave_revocations = follow_revocations(self.redis, self.tokens, keys)
        if not self._settings.state_keys:
            log.warn(
                "sessions and open questions are not shared: BRIDGEHEAD_STATE_KEYS is not set",
                next_step="Set it to the same random key on all replicas.",
            )

    def make_throttle(self, monotonic: Callable[[], float]) -> SharedThrottle:
        """Make the throttle that counts each caller's requests over all replicas."""
        fails_closed = self._settings.limits_without_redis == "closed"
        throttle = SharedThrottle(self.redis, Throttle(monotonic), fails_closed=fails_closed)
        self.metrics.total(
            "bridgehead_limits_without_redis_total",
            "Requests whose limit was decided without Redis.",
            lambda: {(): float(throttle.without_redis)},
        )
        return throttle

    def describe(self) -> dict[str, Any]:
        """Report Redis for /readyz."""
        return {"up": self.redis.is_up, **({"says": self.redis.problem} if self.redis.problem else {})}

    async def stop(self) -> None:
        """Stop listening to the others, and release Redis."""
        self._changes.stop()
        self._leave_revocations()
        await self.redis.close()


def open_replica(settings: HostSettings) -> Replica | None:
    """Make this process a replica, not started; None if BRIDGEHEAD_REDIS_URL is not set."""
    redis = open_redis(settings)
    return None if redis is None else Replica(settings, redis)
