"""Factory: puts the host's application together from settings, and says what is missing."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from bridgehead.mcp import Limits, Tasks, UsedStates
from bridgehead.mcp.http.guard import Guard
from bridgehead.runtime import directories, events, logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.tasks import open_task_store
from bridgehead.runtime.timing import Clock

from .app import HostApplication
from .auth.admission import Admission
from .auth.authenticator import Authenticator, FileIssuer, Issuer
from .auth.throttle import Throttle
from .auth.tokens import FileTokens, TokenFile, Tokens, TokenStore, TokenWatch
from .dashboard import layout
from .dashboard.dashboard import Dashboard
from .dashboard.history import History
from .dashboard.sign_in import SignIn
from .dashboard.snapshot import Camera
from .pages import Pages
from .proxies import Proxies
from .registry import Registry
from .reloading import Reloader
from .replicas.consent import ReplicatedConsent
from .request import log_fields
from .routes import make_table
from .settings import HostSettings
from .telemetry.access_log import AccessLog
from .telemetry.metrics import HostMetrics
from .tls import Certificate
from .views import Views
from .workers.consent import SharedConsent

if TYPE_CHECKING:
    from pathlib import Path

    from .auth.oauth import OAuthIssuer
    from .dashboard.oauth_sign_in import OAuthSignIn, UsedOnce
    from .database import HostDatabase
    from .events.webhook import Webhook
    from .replicas.replica import Replica
    from .telemetry.exporting import Telemetry
    from .workers.forwarding import Workers


def tokens_path(settings: HostSettings) -> Path:
    """Return where the file of tokens is."""
    return settings.tokens_file or directories.open_state(settings, "host") / "tokens.json"


def token_store(settings: HostSettings) -> TokenStore:
    """Return where tokens are: in the database where there is one, unless a file is named, else in a file."""
    if settings.database_url is None or settings.tokens_file is not None:
        return TokenFile(tokens_path(settings))
    from .auth.token_database import TokenDatabase

    return TokenDatabase(settings.database_url)


def open_tokens(settings: HostSettings) -> Tokens | None:
    """Read the tokens that let callers in; None where nobody is asked. Raises BridgeError where none is."""
    if not settings.needs_auth:
        return None
    tokens = _hold_tokens(token_store(settings))
    tokens.read()
    if not tokens and not tokens.problem and not settings.oauth_issuer:
        raise BridgeError(
            f"Callers of this server (MCP_SERVER_HOST is {settings.host!r}) need a token, and there is none.",
            next_step="Make one with bridgehead token add NAME, or set BRIDGEHEAD_OAUTH_ISSUER. Without "
            "either, the server can only listen on localhost.",
        )
    return tokens


def _hold_tokens(store: TokenStore) -> Tokens:
    if isinstance(store, TokenFile):
        store.read()  # what is wrong with the file is said at the start
        return FileTokens(store)
    from .auth.token_database import SharedTokens

    return SharedTokens(store)


def limits_of(settings: HostSettings) -> Limits:
    """Return the engine's limits as the settings have them."""
    return Limits(
        message_bytes=settings.body_limit,
        body_seconds=settings.body_seconds,
        shutdown_seconds=settings.shutdown_seconds,
        sessions_per_caller=settings.sessions_per_client,
        session_idle_seconds=settings.session_seconds,
        streams_per_caller=settings.streams_per_client,
        http_requests_per_caller=settings.requests_per_client,
        tasks=settings.tasks,
        tasks_per_caller=settings.tasks_per_client,
        task_bytes=settings.task_bytes,
        task_bytes_per_caller=settings.task_bytes_per_client,
        task_seconds=settings.task_seconds,
    )


def _limits_for_all(settings: HostSettings, limits: Limits) -> dict[tuple[str, ...], float]:
    """Return what may be open in this process, as it is shown beside what is."""
    return {
        ("client", "connections"): float(settings.connections_per_client),
        ("all", "connections"): float(settings.connections),
        ("all", "sessions"): float(limits.sessions),
        ("all", "streams"): float(limits.listen_streams),
        ("all", "requests"): float(limits.http_requests_in_flight),
    }


def make_application(
    settings: HostSettings,
    manifests: Mapping[str, Manifest],
    environment: Mapping[str, str],
    clock: Clock,
    *,
    state_keys: tuple[bytes, ...],
    telemetry: Telemetry | None = None,
    workers: Workers | None = None,
    certificate: Certificate | None = None,
    replica: Replica | None = None,
) -> HostApplication:
    """Make the application of one process."""
    logs.also(log_fields)
    tokens = open_tokens(settings)
    database = _open_database(settings, tokens)
    oauth = _oauth_issuer(settings, manifests, environment, clock)
    issuers: list[Issuer] = [] if tokens is None else [FileIssuer(tokens, clock)]
    if oauth is not None:
        issuers.append(oauth)
    tracer = None if telemetry is None else telemetry.tracer
    history = History(clock)
    registry = Registry(
        manifests,
        environment,
        is_traced=tracer is not None,
        probe_seconds=settings.probe_seconds,
        store_audit=None if database is None else database.add_audit,
        note_failure=history.note_failure if settings.dashboard else None,
    )
    guard = Guard(settings.hosts, settings.allowed_origins)
    limits = limits_of(settings)
    consent = _open_consent(settings, workers, replica, clock)
    views = Views(
        registry,
        settings.tool_filter,
        guard,
        limits,
        Tasks(limits, partial(open_task_store, settings, "host")),
        state_keys=state_keys,
        session_prefix=_session_prefix(workers, replica),
        tracer=tracer,
        used_states=consent,
        on_error=lambda *error: metrics.count_error(*error),  # noqa: PLW0108 - it is made below
    )
    metrics = HostMetrics(views.callers)
    metrics.limits |= _limits_for_all(settings, limits)
    metrics.show_tasks(views.tasks)
    if certificate is not None:
        metrics.show_certificate(lambda: certificate.expires)
    access_log = AccessLog(settings.access_log, clock)
    authenticator = Authenticator(issuers, clock, metrics.auth_failures.add)
    page_keys = _derive(state_keys, b"dashboard")
    signing_in = _sign_in_elsewhere(settings, oauth, environment, clock, page_keys, consent)
    paths = (*layout.PAGES, *layout.FILES) if settings.dashboard else ()
    paths += layout.OAUTH_PAGES if settings.dashboard and signing_in else ()
    admission = Admission(
        make_table(manifests, with_oauth=oauth is not None, pages=paths),
        guard,
        authenticator,
        Throttle(clock.monotonic),
        (lambda _request: "") if oauth is None else oauth.challenge_details,
        shared=None if replica is None else replica.make_throttle(clock.monotonic),
    )
    return HostApplication(
        registry,
        views,
        admission,
        Pages(
            registry, metrics, None if oauth is None else oauth.describe_resource, workers, replica, database
        ),
        proxies=Proxies(settings.trusted_proxies),
        metrics=metrics,
        access_log=access_log,
        reloader=Reloader(
            settings, environment, tokens=tokens, certificate=certificate, access_log=access_log
        ),
        clock=clock,
        watch=TokenWatch(tokens, clock),
        shutdown_seconds=settings.shutdown_seconds,
        telemetry=telemetry,
        webhook=_make_webhook(settings, environment, clock, metrics),
        replica=replica,
        database=database,
        dashboard=None
        if not settings.dashboard
        else Dashboard(
            registry,
            views,
            SignIn(
                authenticator,
                tokens,
                page_keys,
                clock,
                settings.public_url,
                f"{settings.oauth_issuer} {settings.oauth_audience}" if oauth else "",
            ),
            Camera(registry, metrics, views, history, clock, 0 if workers is None else workers.index),
            history,
            clock,
            count_rejection=metrics.rejections.add,
            count_call=admission.count,
            tokens=tokens,
            token_store=None if tokens is None else token_store(settings),
            workers=workers,
            oauth=signing_in,
        ),
    )


def _derive(keys: tuple[bytes, ...], purpose: bytes) -> tuple[bytes, ...]:
    """Make the keys for one purpose, the same in all processes that have the same keys."""
    return tuple(hmac.digest(key, purpose, "sha256") for key in keys)


def _open_database(settings: HostSettings, tokens: Tokens | None) -> HostDatabase | None:
    if settings.database_url is None:
        return None
    from .auth.token_database import SharedTokens
    from .database import open_host_database

    database = open_host_database(settings)
    if database is not None and isinstance(tokens, SharedTokens):
        database.tokens = tokens
    return database


def _session_prefix(workers: Workers | None, replica: Replica | None) -> str:
    """Return what the ids of sessions begin with, so that other processes know whose they are."""
    if replica is not None and replica.session_prefix:
        return replica.session_prefix
    return "" if workers is None else workers.session_prefix


def _open_consent(
    settings: HostSettings, workers: Workers | None, replica: Replica | None, clock: Clock
) -> ReplicatedConsent | SharedConsent | UsedStates:
    """Remember which confirmations were used: in this process, in a file of all workers, or in Redis."""
    if replica is not None:
        return ReplicatedConsent(replica.redis, clock.now)
    if workers is None:
        return UsedStates()
    return SharedConsent(directories.open_state(settings, "host"), clock.now)


def _make_webhook(
    settings: HostSettings, environment: Mapping[str, str], clock: Clock, metrics: HostMetrics
) -> Webhook | None:
    events.feed.with_content = settings.event_content
    if not settings.webhook_url:
        return None
    from .events.webhook import Webhook

    logs.hide(settings.webhook_secret)
    made = Webhook(
        settings.webhook_url,
        settings.webhook_secret,
        clock,
        patterns=settings.webhook_events,
        environment=environment,
    )
    made.declare_metrics(metrics.metrics)
    return made


def _oauth_issuer(
    settings: HostSettings, bridges: Iterable[str], environment: Mapping[str, str], clock: Clock
) -> OAuthIssuer | None:
    if not settings.oauth_issuer or not settings.oauth_audience:
        return None
    from bridgehead.runtime.http import Proxies

    from .auth.discovery import fetch
    from .auth.oauth import OAuthIssuer

    return OAuthIssuer(
        settings.oauth_issuer,
        settings.oauth_audience,
        settings.oauth_jwks_url,
        bridges=bridges,
        public_url=settings.public_url,
        clock=clock,
        fetch=partial(fetch, proxies=Proxies.from_environment(environment)),
    )


def _sign_in_elsewhere(
    settings: HostSettings,
    oauth: OAuthIssuer | None,
    environment: Mapping[str, str],
    clock: Clock,
    keys: tuple[bytes, ...],
    used: UsedOnce,
) -> OAuthSignIn | None:
    """Let people sign in to the dashboard at the issuer, where it knows this host as a client."""
    if oauth is None or not settings.oauth_client_id:
        return None
    from bridgehead.runtime.http import Proxies

    from .auth.code_flow import Client, CodeFlow
    from .auth.discovery import fetch, post
    from .dashboard.oauth_sign_in import OAuthSignIn

    logs.hide(settings.oauth_client_secret)
    proxies = Proxies.from_environment(environment)
    flow = CodeFlow(
        settings.oauth_issuer or "",
        Client(settings.oauth_client_id, settings.oauth_client_secret),
        settings.oauth_audience or "",
        clock,
        fetch=partial(fetch, proxies=proxies),
        post=partial(post, proxies=proxies),
        verify_id_token=oauth.verify_id_token,
    )
    return OAuthSignIn(flow, keys, clock, settings.public_url, used)
