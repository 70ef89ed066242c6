"""Doctor: what `bridgehead serve` would do with the settings as they are, without serving."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping
from urllib.parse import urlsplit

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, settings_finding
from bridgehead.runtime.settings import hide_credentials

from . import tls
from .auth.token_stores import open_tokens, token_store
from .dashboard.layout import OAUTH_CALLBACK
from .registry import installed
from .settings import HostSettings
from .telemetry.exporting import find_endpoint, wanted_signals

_TRY_SECONDS = 3.0

SHARED = "request limits, changes, who has which session or task, used confirmations, revoked tokens"
"""What replicas agree on through Redis, whatever else is set."""
APART = "connections and streams open at once, and metrics"
"""What each replica has for itself."""


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
        *await _sign_in(settings, f"{scheme}://{settings.shown_host}:{settings.port}"),
        await _database(settings),
        await _redis(settings),
        *await _telemetry(environment),
        *await _webhook(settings),
        _far_sides(settings),
    ]


async def _telemetry(environment: Mapping[str, str]) -> list[Finding]:
    """Say what is exported by OpenTelemetry, and whether there is somebody to take it."""
    wanted = wanted_signals(environment)
    if not wanted:
        return [Finding("telemetry", "right", "nothing is exported: no OTEL_EXPORTER_OTLP_ENDPOINT is set")]
    if importlib.util.find_spec("opentelemetry") is None:
        text = f"{', '.join(wanted)} should be exported, but the extra is not installed"
        return [Finding("telemetry", "wrong", text, 'pip install "bridgehead[otel]"')]
    found = []
    for signal, exporter in wanted.items():
        if exporter != "otlp":
            found.append(Finding(f"telemetry: {signal}", "right", f"to {exporter}"))
            continue
        url = find_endpoint(environment, signal)
        found.append(await _try_address(f"telemetry: {signal}", url, "Start the collector, or correct it."))
    return found


async def _webhook(settings: HostSettings) -> list[Finding]:
    """Say where events are posted; nothing is posted to find out."""
    if not settings.webhook_url:
        return []
    parts = urlsplit(settings.webhook_url)
    origin = f"{parts.scheme}://{parts.netloc}"  # what follows may be a key
    found = [await _try_address("webhook", origin, "Correct BRIDGEHEAD_WEBHOOK_URL.")]
    if not settings.webhook_secret:
        text = "events are not signed: a receiver cannot verify where they come from"
        found.append(Finding("webhook signature", "note", text, "Set BRIDGEHEAD_WEBHOOK_SECRET."))
    return found


async def _try_address(what: str, url: str, advice: str) -> Finding:
    """Connect to where a URL leads, and no more."""
    parts, shown = urlsplit(url), hide_credentials(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_TRY_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
            writer.close()
            await writer.wait_closed()
    except (OSError, TimeoutError) as problem:
        why = "no answer in time" if isinstance(problem, TimeoutError) else problem.strerror or str(problem)
        return Finding(what, "wrong", f"{shown} cannot be reached: {why}", advice)
    return Finding(what, "right", f"{shown} can be reached")


def _far_sides(settings: HostSettings) -> Finding:
    if not settings.probe_seconds:
        return Finding("far sides", "note", "checked only by calls: BRIDGEHEAD_PROBE_SECONDS is 0")
    return Finding("far sides", "right", f"checked every {settings.probe_seconds:g} s")


async def _database(settings: HostSettings) -> Finding:
    from bridgehead.runtime.stores import migrations

    from .database import read_schema

    return await migrations.examine(settings.database_url, read_schema, "tokens and audit lines")


async def _redis(settings: HostSettings) -> Finding:
    """Try Redis as a replica would, and say what is shared through it."""
    from bridgehead.runtime.stores.redis_check import examine_redis

    shared = SHARED if settings.redis_url and not settings.state_keys else f"{SHARED} and sessions"
    found = await examine_redis(settings, shared, APART)
    if found.verdict != "right" or not settings.redis_url or settings.state_keys:
        return found
    advice = "Set BRIDGEHEAD_STATE_KEYS to the same random key on all replicas."
    return Finding("redis", "note", f"{found.text}, and not sessions and open questions", advice)


async def _sign_in(settings: HostSettings, address: str) -> list[Finding]:
    """Say where people sign in to the dashboard, and what their authorisation server has to know."""
    if not settings.oauth_issuer or not settings.oauth_client_id:
        return []
    found = await _try_address("OAuth issuer", settings.oauth_issuer, "Correct BRIDGEHEAD_OAUTH_ISSUER.")
    callback = (settings.public_url or address).rstrip("/") + OAUTH_CALLBACK
    return [found, Finding("dashboard", "right", f"sign-in with OAuth; the redirect URI is {callback}")]


def _tokens(settings: HostSettings) -> Finding:
    try:
        tokens = open_tokens(settings)
    except BridgeError as error:
        return Finding("tokens", "note", error.message, error.next_step)
    if tokens is not None and tokens.problem:
        return Finding("tokens", "wrong", tokens.problem, "Until they can be read, nobody is let in.")
    if tokens is None:
        return Finding("tokens", "right", "not needed: only this machine can reach the address")
    issuer = f", and those of {settings.oauth_issuer}" if settings.oauth_issuer else ""
    return Finding(
        "tokens", "right", f"everyone needs one; {len(tokens)} in {token_store(settings).where}{issuer}"
    )
