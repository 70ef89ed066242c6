"""Examining: what a doctor says of Redis: whether it can be used, what is shared through it, and what not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import BridgeError
from ..findings import Finding
from ..settings import hide_credentials
from . import StoreError, StoreUnavailable, open_own_redis

if TYPE_CHECKING:
    from ..directories import ReplicaSettings
    from .redis import Redis

_LIMIT = re.compile(rb"maxmemory:(\d+)")
_POLICY = re.compile(rb"maxmemory_policy:([\w-]+)")
_KEEPS = b"noeviction"


async def examine_redis(settings: ReplicaSettings, shared: str, apart: str) -> Finding:
    """Try Redis as a replica would; `apart` is what replicas do not share through it."""
    if settings.redis_url is None:
        return Finding("redis", "right", f"not set: {shared} are kept on this machine")
    where = hide_credentials(settings.redis_url)
    try:
        redis = open_own_redis(settings)
    except BridgeError as failure:
        return Finding("redis", "wrong", failure.message, failure.next_step)
    await redis.start()
    try:
        if redis.problem:
            advice = "Start it, or correct BRIDGEHEAD_REDIS_URL."
            return Finding("redis", "wrong", f"{where}: {redis.problem}", advice)
        policy = await _read_eviction(redis)
    finally:
        await redis.close()
    if policy:
        text = f"{where} drops what it knows when it is full ({policy}): limits and sessions would be lost"
        return Finding("redis", "wrong", text, "Set its maxmemory-policy to noeviction.")
    return Finding("redis", "right", f"{where}: shares {shared} with other replicas, but not {apart}")


async def _read_eviction(redis: Redis) -> str:
    """Return how it makes room where it does so by forgetting; nothing where it refuses, or does not say."""
    try:
        about: bytes = await redis.call("INFO", "memory")
    except (StoreUnavailable, StoreError):
        return ""
    limit, policy = _LIMIT.search(about), _POLICY.search(about)
    if limit is None or policy is None or int(limit[1]) == 0 or policy[1] == _KEEPS:
        return ""
    return policy[1].decode()
