"""Replica: this process as one of several, on any number of machines, and what it shares with them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bridgehead.mcp import Bridge
from bridgehead.mcp.http.message import Handler
from bridgehead.mcp.http.server.connections import OnReject, log_rejection
from bridgehead.runtime import logs
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.stores import open_redis

from ..auth.revocation import follow_revocations
from ..auth.shared_throttle import SharedThrottle
from ..auth.throttle import Throttle
from ..settings import HostSettings
from .changes import ChangeRelay
from .directory import Directory, own_address
from .peers import PeerEntrance, Peers

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

    from ..auth.tokens import Tokens

log = logs.logger("host.replicas")


class Replica:
    """What this process shares with others through Redis."""

    def __init__(self, settings: HostSettings, redis: Redis) -> None:
        self._settings = settings
        self.redis = redis
        self.metrics = Metrics()
        redis.declare_metrics(self.metrics)
        self._directory = Directory(redis)
        self.peers = (
            Peers(self._directory, settings.derive_keys("forwarding")) if settings.state_keys else None
        )
        """Those whose sessions we can reach; None where there is no key to sign with."""
        self._changes = ChangeRelay(redis, self._directory.node)
        self.tokens: Tokens | None = None
        """Those that end here as soon as they are revoked anywhere."""
        self._leave_revocations: Callable[[], None] = lambda: None

    @property
    def session_prefix(self) -> str:
        """What the ids of our sessions begin with; nothing where nobody could forward to us."""
        return "" if self.peers is None else self.peers.session_prefix

    async def start(self, bridges: Mapping[str, Bridge[Any]]) -> None:
        """Connect to Redis, and go on without it where it is not there."""
        await self.redis.start()
        self._changes.start(bridges)
        if self.tokens is not None:
            self._leave_revocations = follow_revocations(self.redis, self.tokens)
        if self.peers is None:
            log.warn(
                "sessions and open questions are this process's alone: BRIDGEHEAD_STATE_KEYS is not set",
                next_step="Set it to the same random key on all replicas.",
            )

    async def open(self, door: socket.socket | None) -> None:
        """Tell the others that this process lives, and where it is reached."""
        await self._directory.start("" if door is None else own_address(self._settings, door))

    def entrance(
        self, app: Handler, otherwise: Handler | None, on_reject: OnReject = log_rejection
    ) -> Handler | None:
        """Make what answers at the door; None where there is none."""
        if self.peers is None:
            return otherwise
        return PeerEntrance(self.peers, app, otherwise, on_reject)

    def make_throttle(self, monotonic: Callable[[], float]) -> SharedThrottle:
        """Make what counts the requests of each caller over all replicas."""
        fails_closed = self._settings.limits_without_redis == "closed"
        throttle = SharedThrottle(self.redis, Throttle(monotonic), fails_closed=fails_closed)
        self.metrics.total(
            "bridgehead_limits_without_redis_total",
            "Requests whose limit was decided without Redis.",
            lambda: {(): float(throttle.without_redis)},
        )
        return throttle

    def describe(self) -> dict[str, Any]:
        """Say how Redis is, for whoever asks whether this process is ready."""
        return {"up": self.redis.is_up, **({"says": self.redis.problem} if self.redis.problem else {})}

    async def stop(self) -> None:
        """Tell the others that this process has ended, and let go of Redis."""
        self._changes.stop()
        self._leave_revocations()
        await self._directory.stop()
        if self.peers is not None:
            await self.peers.close()
        await self.redis.close()


def open_replica(settings: HostSettings) -> Replica | None:
    """Make this process a replica, where the settings say what it shares with others; not started yet."""
    redis = open_redis(settings)
    return None if redis is None else Replica(settings, redis)
