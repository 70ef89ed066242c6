"""Redis check: the doctor's finding on Redis. Needs the client library only if a URL is set."""

from __future__ import annotations

import re
from contextlib import suppress

from ..directories import ReplicaSettings
from ..errors import BridgeError
from ..findings import Finding
from ..settings import hide_credentials
from . import StoreError, StoreUnavailable, open_own_redis

_LIMIT = re.compile(rb"maxmemory:(\d+)")
_POLICY = re.compile(rb"maxmemory_policy:([\w-]+)")


async def examine_redis(settings: ReplicaSettings, shared: str, unshared: str) -> Finding:
    """Connect as a replica would; the texts name what goes through Redis and what does not."""
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
        # With a memory limit, any policy but noeviction silently drops keys: counters, locks, owners.
        policy = ""
        with suppress(StoreUnavailable, StoreError):  # INFO may be forbidden; that is no finding
            about: bytes = await redis.call("INFO", "memory")
            limit, name = _LIMIT.search(about), _POLICY.search(about)
            if limit is not None and name is not None and int(limit[1]) > 0 and name[1] != b"noeviction":
                policy = name[1].decode()
    finally:
        await redis.close()
    if policy:
        text = f"{where} evicts keys when it is full ({policy}): limits and sessions would be lost"
        return Finding("redis", "wrong", text, "Set its maxmemory-policy to noeviction.")
    return Finding("redis", "right", f"{where}: shares {shared} with other replicas, but not {unshared}")
