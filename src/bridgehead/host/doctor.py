"""Doctor: checks the settings of `bridgehead serve` and all that it connects to, without serving."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping
from urllib.parse import urlsplit

from bridgehead.runtime.directories import looking
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, settings_finding
from bridgehead.runtime.settings import hide_credentials
from bridgehead.runtime.stores import migrations

from . import tls
from .auth.oauth import resource_base
from .auth.token_stores import open_tokens, token_store
from .dashboard.layout import OAUTH_CALLBACK
from .registry import installed
from .setting_checks import find_problems
from .settings import HostSettings
from .telemetry.exporting import find_endpoint, wanted_signals

_CONNECT_SECONDS = 3.0

SHARED = "request limits, changes, who has which session or task, used confirmations, revoked tokens"
"""What replicas share through Redis, with and without BRIDGEHEAD_STATE_KEYS."""
APART = "connections and streams open at once, and metrics"
"""What each replica keeps for itself."""


async def examine(environment: Mapping[str, str]) -> list[Finding]:
    """Check everything. Raises SettingError for a wrong setting."""
    settings = HostSettings(environment)
    # Both raise SettingError: for a bridge that is not installed, and for a certificate without its key.
    served = installed(settings.bridges)
    problems = find_problems(environment, settings, served)
    tls.certificate(settings)
    scheme = "https" if settings.tls_cert else "http"
    address = f"{scheme}://{settings.shown_host}:{settings.port}/mcp"
    named = ", ".join(settings.bridges) or "all bridges"
    if settings.probe_seconds:
        far_sides = Finding("connections", "right", f"checked every {settings.probe_seconds:g} s")
    else:
        far_sides = Finding("connections", "note", "checked only by calls: BRIDGEHEAD_PROBE_SECONDS is 0")
    return [
        settings_finding(settings, environment),
        *(Finding("settings", "wrong", problem) for problem in problems),
        Finding("would serve", "right", f"{named} at {address}"),
        await asyncio.to_thread(_look_at_tokens, settings),
        *await _sign_in(settings, f"{scheme}://{settings.shown_host}:{settings.port}"),
        await _database(settings),
        await _redis(settings),
        *await _telemetry(environment),
        *await _webhook(settings),
        far_sides,
    ]


async def _telemetry(environment: Mapping[str, str]) -> list[Finding]:
    """Report what OpenTelemetry exports, and whether each collector can be reached."""
    exporters = wanted_signals(environment)
    if not exporters:
        return [Finding("telemetry", "right", "nothing is exported: no OTEL_EXPORTER_OTLP_ENDPOINT is set")]
    if importlib.util.find_spec("opentelemetry") is None:
        text = f"{', '.join(exporters)} should be exported, but the extra is not installed"
        return [Finding("telemetry", "wrong", text, 'pip install "bridgehead[otel]"')]
    findings = []
    for signal, exporter in exporters.items():
        if exporter != "otlp":
            findings.append(Finding(f"telemetry: {signal}", "right", f"to {exporter}"))
            continue
        url = find_endpoint(environment, signal)
        findings.append(await _connect(f"telemetry: {signal}", url, "Start the collector, or correct it."))
    return findings


async def _webhook(settings: HostSettings) -> list[Finding]:
    """Check that the webhook can be reached and is signed; post nothing."""
    if not settings.webhook_url:
        return []
    parts = urlsplit(settings.webhook_url)
    # Only the origin is shown: many receivers put a key into the path.
    origin = f"{parts.scheme}://{parts.netloc}"
    findings = [await _connect("webhook", origin, "Correct BRIDGEHEAD_WEBHOOK_URL.")]
    if not settings.webhook_secret:
        text = "events are not signed: a receiver cannot verify where they come from"
        findings.append(Finding("webhook signature", "note", text, "Set BRIDGEHEAD_WEBHOOK_SECRET."))
    return findings


async def _connect(what: str, url: str, advice: str) -> Finding:
    """Open a TCP connection to a URL's host, and send nothing."""
    parts, shown = urlsplit(url), hide_credentials(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
            writer.close()
            await writer.wait_closed()
    except (OSError, TimeoutError) as problem:
        why = "no answer in time" if isinstance(problem, TimeoutError) else problem.strerror or str(problem)
        return Finding(what, "wrong", f"{shown} cannot be reached: {why}", advice)
    return Finding(what, "right", f"{shown} can be reached")


async def _database(settings: HostSettings) -> Finding:
    from .database import read_schema  # lazy: PostgreSQL, 14 ms

    return await migrations.examine(settings.database_url, read_schema, "tokens and audit lines")


async def _redis(settings: HostSettings) -> Finding:
    """Connect to Redis as a replica would, and report what is shared through it."""
    from bridgehead.runtime.stores.redis_check import examine_redis  # lazy: Redis, 90 ms

    # A request is forwarded to the replica that owns its session only if a state key can sign it.
    shared = SHARED if settings.redis_url and not settings.state_keys else f"{SHARED} and sessions"
    finding = await examine_redis(settings, shared, APART)
    if finding.verdict != "right" or not settings.redis_url or settings.state_keys:
        return finding
    advice = "Set BRIDGEHEAD_STATE_KEYS to the same random key on all replicas."
    return Finding("redis", "note", f"{finding.text}, and not sessions and open questions", advice)


async def _sign_in(settings: HostSettings, address: str) -> list[Finding]:
    """Check the OAuth issuer, and show the redirect URI of the dashboard to register there."""
    if not settings.oauth_issuer:
        return []
    findings = []
    if not resource_base(settings.oauth_audience or "", settings.public_url):
        text = "clients are not told where to get a token: the server does not know its own address"
        findings.append(Finding("OAuth", "note", text, "Set BRIDGEHEAD_PUBLIC_URL."))
    if not settings.oauth_client_id:
        return findings
    issuer = await _connect("OAuth issuer", settings.oauth_issuer, "Correct BRIDGEHEAD_OAUTH_ISSUER.")
    callback = (settings.public_url or address).rstrip("/") + OAUTH_CALLBACK
    return [
        *findings,
        issuer,
        Finding("dashboard", "right", f"sign-in with OAuth; the redirect URI is {callback}"),
    ]


def _look_at_tokens(settings: HostSettings) -> Finding:
    with looking(settings, "host") as own:
        return _tokens(own)


def _tokens(settings: HostSettings) -> Finding:
    try:
        tokens = open_tokens(settings)
    except BridgeError as error:
        return Finding("tokens", "note", error.message, error.next_step)
    if tokens is not None and tokens.problem:
        return Finding("tokens", "wrong", tokens.problem, "Until they can be read, no token is accepted.")
    if tokens is None or not settings.needs_auth:
        count = f"; {len(tokens)} that a caller may show, for its own limits and budgets" if tokens else ""
        return Finding("tokens", "right", f"not needed: only this machine can reach the address{count}")
    issuer = f", and those of {settings.oauth_issuer}" if settings.oauth_issuer else ""
    return Finding(
        "tokens", "right", f"everyone needs one; {len(tokens)} in {token_store(settings).where}{issuer}"
    )
