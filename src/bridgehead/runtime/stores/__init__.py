"""Stores: generic Redis, PostgreSQL and SQLite code. The stored data is defined in other packages.

A client library is imported only if a setting names its server.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ..directories import ReplicaSettings
from ..errors import BridgeError
from .scripts import Script, StoreError, StoreUnavailable

if TYPE_CHECKING:
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

REDIS_SECONDS = 0.5
"""How long a command waits for Redis: far more than a healthy one takes, and little enough that the first
call of an outage can wait it out. Later calls do not wait."""


def open_redis(settings: ReplicaSettings) -> Redis | None:
    """Return the process's shared connection to Redis, not started; None if no URL is set."""
    if settings.redis_url is None:
        return None
    redis: Redis = _load().shared(settings.redis_url, REDIS_SECONDS)
    return redis


def open_own_redis(settings: ReplicaSettings) -> Redis:
    """Return a separate connection to Redis, for a command or another thread's loop; not started."""
    redis: Redis = _load().Redis(settings.redis_url or "", REDIS_SECONDS)
    return redis


def _load() -> ModuleType:
    try:
        from . import redis  # lazy: Redis, 90 ms
    except ImportError:
        raise BridgeError(
            "BRIDGEHEAD_REDIS_URL is set, and the Redis client is not installed.",
            next_step="Install it with pip install 'bridgehead[redis]'.",
        ) from None
    return redis
