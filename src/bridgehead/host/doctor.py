"""Doctor: what `bridgehead serve` would do with the settings as they are, without serving."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, settings_finding
from bridgehead.runtime.settings import hide_credentials
from bridgehead.runtime.stores import open_redis

from . import tls
from .factory import open_tokens, token_store
from .registry import installed
from .settings import HostSettings

SHARED = "request limits, changes, tasks"
"""What replicas agree on through Redis, whatever else is set."""


async def examine(environment: Mapping[str, str]) -> list[Finding]:
    """Look at everything; raises SettingError where a setting is wrong."""
    settings = HostSettings(environment)
    installed(settings.bridges)
    tls.certificate(settings)
    scheme = "https" if settings.tls_cert else "http"
    address = f"{scheme}://{settings.shown_host}:{settings.port}/mcp"
    served = ", ".join(settings.bridges) or "all bridges"
    processes = f", {settings.workers} processes" if settings.workers > 1 else ""
    return [
        settings_finding(settings, environment),
        Finding("would serve", "right", f"{served} at {address}{processes}"),
        await asyncio.to_thread(_tokens, settings),
        *await _database(settings),
        await _redis(settings),
    ]


async def _database(settings: HostSettings) -> list[Finding]:
    if settings.database_url is None:
        return []
    from bridgehead.runtime.stores import migrations

    from .database import read_schema

    return [await migrations.examine(settings.database_url, read_schema(), "tokens and audit lines")]


async def _redis(settings: HostSettings) -> Finding:
    """Try Redis as a replica would, and say what is shared through it."""
    redis = open_redis(settings)
    if redis is None:
        text = "not set: limits, changes, sessions and tasks are this machine's"
        return Finding("redis", "right", text)
    await redis.start()
    problem = redis.problem
    await redis.close()
    where = hide_credentials(settings.redis_url or "")
    if problem:
        return Finding("redis", "wrong", f"{where}: {problem}", "Start it, or fix BRIDGEHEAD_REDIS_URL.")
    if settings.state_keys:
        return Finding("redis", "right", f"{where}: shares {SHARED} and sessions with other replicas")
    advice = "Set BRIDGEHEAD_STATE_KEYS to the same random key on all replicas."
    return Finding("redis", "note", f"{where}: shares {SHARED}, but not sessions and open questions", advice)


def _tokens(settings: HostSettings) -> Finding:
    try:
        tokens = open_tokens(settings)
    except BridgeError as error:
        return Finding("tokens", "note", error.message, error.next_step)
    if tokens is None:
        return Finding("tokens", "right", "nobody needs one: only this machine can reach the address")
    issuer = f", and those of {settings.oauth_issuer}" if settings.oauth_issuer else ""
    return Finding(
        "tokens", "right", f"everyone needs one; {len(tokens)} in {token_store(settings).where}{issuer}"
    )
