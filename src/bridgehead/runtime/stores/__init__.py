"""Stores: the servers that replicas share, and how each is opened where its setting names it.

A client library is imported only then. Everything that is stored keeps its interface in its own room, with a
version that needs no server as the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import BridgeError
from .scripts import Script, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from types import ModuleType

    from ..directories import ReplicaSettings
    from .redis import Redis

__all__ = [
    "Script",
    "StoreError",
    "StoreUnavailable",
    "migrations",
    "open_own_redis",
    "open_redis",
    "postgres",
    "sqlite",
]


def open_redis(settings: ReplicaSettings) -> Redis | None:
    """Return this process's connection to Redis, not started; None where no setting names one."""
    if settings.redis_url is None:
        return None
    found: Redis = _load().shared(settings.redis_url, settings.redis_seconds)
    return found


def open_own_redis(settings: ReplicaSettings) -> Redis:
    """Return a connection to Redis for one's own loop, in a command or another thread; not started."""
    made: Redis = _load().Redis(settings.redis_url or "", settings.redis_seconds)
    return made


def _load() -> ModuleType:
    try:
        from . import redis
    except ImportError:
        raise BridgeError(
            "BRIDGEHEAD_REDIS_URL is set, and the Redis client is not installed.",
            next_step="Install it with pip install 'bridgehead[redis]'.",
        ) from None
    return redis
