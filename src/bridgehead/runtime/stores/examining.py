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
_HAS_COPY = re.compile(rb"connected_slaves:[1-9]")
_LOGS_WRITES = b"aof_enabled:1"


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
        text = f"{where} drops what it knows when it is full ({policy}): budgets would count from zero again"
        return Finding("redis", "wrong", text, "Set its maxmemory-policy to noeviction.")
    return Finding("redis", "right", f"{where}: shares {shared} with other replicas, but not {apart}")


async def examine_budgets(settings: ReplicaSettings, database_url: str | None) -> Finding | None:
    """Say whether budgets that replicas share hold when Redis forgets; nothing where Redis is not there."""
    if database_url is not None:
        text = "never passed, also when Redis forgets something: PostgreSQL allots what it may spend"
        return Finding("budgets", "right", text)
    redis = open_own_redis(settings)
    await redis.start()
    try:
        loss = await _read_loss(redis)
    except (StoreUnavailable, StoreError):
        return None
    finally:
        await redis.close()
    if not loss:
        return Finding("budgets", "right", "Redis writes what was spent to its disk at once")
    text = f"a budget can be passed if Redis and a replica fail together: {loss}"
    return Finding("budgets", "note", text, "Set BRIDGEHEAD_DATABASE_URL beside BRIDGEHEAD_REDIS_URL.")


async def _read_loss(redis: Redis) -> str:
    """Return how it could forget something that it has acknowledged; nothing where it could not."""
    about: bytes = await redis.call("INFO")
    if _HAS_COPY.search(about) or redis.url.partition("://")[0].endswith("+sentinel"):
        return "a copy that takes its place may lack the last writes"
    if _LOGS_WRITES not in about:
        return "Redis does not log its writes (appendonly no)"
    try:
        _, policy = await redis.call("CONFIG", "GET", "appendfsync")
    except (StoreUnavailable, StoreError):  # it refuses, where its user lacks the permission
        return "Redis does not tell when it writes to its disk (appendfsync)"
    return "" if policy == b"always" else f"Redis writes to its disk later (appendfsync {policy.decode()})"


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
