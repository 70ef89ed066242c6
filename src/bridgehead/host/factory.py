"""Factory: builds the host's application from settings."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bridgehead.mcp import Limits, MemoryNonces, NonceStore, ProtocolError, Tasks
from bridgehead.mcp.http.guard import Guard
from bridgehead.mcp.http.memory import available_bytes
from bridgehead.runtime import directories, events, logs
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.http import Proxies
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.tasks import open_task_store
from bridgehead.runtime.timing import Clock

from .app import HostApplication
from .audit.stores import SqliteAudit
from .audit.trail import Trail, read_key
from .auth.admission import Admission
from .auth.authenticator import Authenticator, Issuer, StoredTokenIssuer
from .auth.discovery import fetch
from .auth.revocation import TokenWatch
from .auth.throttle import Throttle
from .auth.token_stores import announced_tokens, open_tokens
from .auth.tokens import Tokens
from .dashboard import layout
from .dashboard.dashboard import Dashboard
from .dashboard.history import History
from .dashboard.oauth_sign_in import OAuthSignIn, make_oauth_sign_in
from .dashboard.sign_in import SignIn
from .dashboard.snapshot import SnapshotCollector
from .events.webhook import Webhook
from .ownership.forwarding import Peers
from .ownership.nonces import RedisNonces
from .pages import Pages
from .proxies import TrustedProxies
from .registry import Registry
from .reloading import Reloader
from .replicas.replica import Replica
from .request import current_request, log_fields
from .routes import make_table
from .settings import HostSettings
from .telemetry.access_log import AccessLog
from .telemetry.metrics import HostMetrics
from .tls import Certificate
from .views import Views

if TYPE_CHECKING:
    from .auth.oauth import OAuthIssuer
    from .database import HostDatabase
    from .telemetry.otlp import Telemetry

_KEY_BYTES = 32
BODY_SECONDS = 30.0
"""How long a client may take to send a body: 16 MiB, the largest by default, arrive in time at 4.5 Mbit/s."""

log = logs.logger("host")


def limits_of(settings: HostSettings) -> Limits:
    """Return the engine's limits: from the settings, the machine's memory, and its own defaults."""
    memory = settings.memory_limit or available_bytes() * 3 // 4
    return Limits(
        memory_bytes=memory,
        bytes_per_caller=min(Limits().bytes_per_caller, memory // 4),
        message_bytes=settings.body_limit,
        body_seconds=BODY_SECONDS,
        shutdown_seconds=settings.shutdown_seconds,
        sessions_per_caller=settings.sessions_per_client,
        session_idle_seconds=settings.session_seconds,
        task_seconds=settings.task_seconds,
    )


class ApplicationFactory:
    """Builds the application of one process.

    Each part is a cached property, built when another part first needs it, so no order has to be kept.
    """

    def __init__(
        self,
        settings: HostSettings,
        manifests: Mapping[str, Manifest],
        environment: Mapping[str, str],
        clock: Clock,
        *,
        limits: Limits,
        state_keys: tuple[bytes, ...],
        telemetry: Telemetry | None = None,
        peers: Peers | None = None,
        certificate: Certificate | None = None,
        replica: Replica | None = None,
    ) -> None:
        self._settings = settings
        self._manifests = manifests
        self._environment = environment
        self._clock = clock
        self._state_keys = state_keys
        self._telemetry = telemetry
        self._tracer = None if telemetry is None else telemetry.tracer
        self._peers = peers
        self._certificate = certificate
        self._replica = replica
        self._limits = limits
        self._guard = Guard(settings.hosts, settings.allowed_origins)
        self._history = History(clock)

    def make(self) -> HostApplication:
        """Build everything. Raises BridgeError if callers need a token and none exists."""
        logs.add_context(log_fields)
        settings, tokens = self._settings, self._tokens  # first: a missing token stops before anything opens
        return HostApplication(
            self._registry,
            self._views,
            self._admission,
            Pages(
                self._registry,
                self._metrics,
                None if self._oauth is None else self._oauth.describe_resource,
                self._replica,
                self._database,
                self._trail,
            ),
            proxies=TrustedProxies(settings.trusted_proxies),
            metrics=self._metrics,
            access_log=self._access_log,
            reloader=Reloader(
                settings,
                self._environment,
                tokens=tokens,
                certificate=self._certificate,
                access_log=self._access_log,
            ),
            clock=self._clock,
            watch=None if tokens is None and not settings.needs_auth else TokenWatch(tokens, self._clock),
            shutdown_seconds=settings.shutdown_seconds,
            tokens=tokens,
            telemetry=self._telemetry,
            webhook=self._make_webhook(),
            replica=self._replica,
            database=self._database,
            trail=self._trail,
            dashboard=self._make_dashboard() if settings.dashboard else None,
            mount=urlsplit(settings.public_url or "").path.rstrip("/"),
            is_https=urlsplit(settings.public_url or "").scheme == "https",
        )

    # --- auth ----------------------------------------------------------------------------------------------

    @cached_property
    def _tokens(self) -> Tokens | None:
        tokens = open_tokens(self._settings)
        if self._replica is not None:
            self._replica.tokens = tokens
        return tokens

    @cached_property
    def _oauth(self) -> OAuthIssuer | None:
        settings = self._settings
        if not settings.oauth_issuer or not settings.oauth_audience:
            return None

        from .auth.oauth import OAuthIssuer  # lazy: OAuth, 40 ms

        return OAuthIssuer(
            settings.oauth_issuer,
            settings.oauth_audience,
            settings.oauth_jwks_url,
            bridges=self._manifests,
            public_url=settings.public_url,
            per_minute=settings.oauth_per_minute,
            clock=self._clock,
            fetch=partial(fetch, proxies=Proxies.from_environment(self._environment)),
        )

    @cached_property
    def _authenticator(self) -> Authenticator:
        issuers: list[Issuer] = [] if self._tokens is None else [StoredTokenIssuer(self._tokens, self._clock)]
        if self._oauth is not None:
            issuers.append(self._oauth)
        return Authenticator(
            issuers,
            self._clock,
            self._metrics.auth_failures.add,
            needs_token=self._settings.needs_auth,
        )

    @cached_property
    def _admission(self) -> Admission:
        has_sign_in = self._oauth_sign_in is not None
        paths = layout.list_paths(with_oauth=has_sign_in) if self._settings.dashboard else ()
        oauth, replica, monotonic = self._oauth, self._replica, self._clock.monotonic
        return Admission(
            make_table(self._manifests, with_oauth=oauth is not None, pages=paths),
            self._guard,
            self._authenticator,
            Throttle(monotonic),
            (lambda _request: "") if oauth is None else oauth.challenge_details,
            shared=None if replica is None else replica.make_throttle(monotonic),
        )

    # --- bridges -------------------------------------------------------------------------------------------

    @cached_property
    def _database(self) -> HostDatabase | None:
        if self._settings.database_url is None:
            return None
        from .auth.token_database import SharedTokens  # lazy: PostgreSQL, 14 ms
        from .database import open_host_database  # lazy: PostgreSQL, 14 ms

        database = open_host_database(self._settings)
        if database is not None and isinstance(self._tokens, SharedTokens):
            database.tokens, database.needs_tokens = self._tokens, self._settings.needs_auth
        return database

    @cached_property
    def _trail(self) -> Trail | None:
        settings = self._settings
        if not settings.audit_days:
            return None
        try:
            key = read_key(settings)
            folder = directories.open_state(settings, "host")
        except StorageError as problem:  # calls go on without an audit, as they do when it cannot be written
            log.warn("calls are not audited", problem=str(problem))
            return None
        store = SqliteAudit(folder) if self._database is None else self._database.audit
        replica = f"{socket.gethostname()}:{os.getpid()}"
        days, lines = settings.audit_days, settings.audit_lines
        return Trail(store, key, replica, self._clock.now, days=days, lines=lines)

    def _note_error(self, method: str, failure: ProtocolError) -> None:
        self._metrics.count_error(method, failure.code)
        request = current_request.get()
        # An unknown tool has no bridge, so no hook saw the call.
        if failure.refused_tool is not None and request is not None and self._trail is not None:
            self._trail.note_refusal(
                request, failure.refused_tool, "not_offered" if failure.hidden_by else "unknown_tool"
            )

    @cached_property
    def _registry(self) -> Registry:
        return Registry(
            self._manifests,
            self._environment,
            is_traced=self._tracer is not None,
            probe_seconds=self._settings.probe_seconds,
            note_call=None if self._trail is None else self._trail.note_call,
            note_failure=self._history.note_failure if self._settings.dashboard else None,
        )

    @cached_property
    def _views(self) -> Views:
        return Views(
            self._registry,
            self._settings,
            self._guard,
            self._limits,
            self._tasks,
            state_keys=self._state_keys,
            session_prefix="" if self._peers is None else self._peers.owners.id_prefix,
            tracer=self._tracer,
            nonces=self._nonces,
            # Looked up when called: the metrics depend on the views, so they are built after them.
            on_error=self._note_error,
        )

    @cached_property
    def _tasks(self) -> Tasks:
        open_store = partial(open_task_store, self._settings, "host")
        if self._peers is None:
            return Tasks(self._limits, open_store)
        return Tasks(
            self._limits,
            open_store,
            id_prefix=self._peers.owners.id_prefix,
            fetch=self._peers.fetch_task,
        )

    @cached_property
    def _nonces(self) -> NonceStore:
        """The nonces of confirmations and sign-ins: those of all replicas, or our own."""
        if self._replica is not None:
            return RedisNonces(self._replica.redis, self._clock.now)
        return MemoryNonces()

    # --- metrics, logs, events, dashboard ------------------------------------------------------------------

    @cached_property
    def _access_log(self) -> AccessLog:
        return AccessLog(self._settings.access_log, self._clock)

    @cached_property
    def _metrics(self) -> HostMetrics:
        metrics = HostMetrics(self._views.accounts)
        metrics.limits |= {
            ("client", "connections"): float(self._settings.connections_per_address),
            ("all", "connections"): float(self._settings.connections),
            ("all", "sessions"): float(self._limits.sessions),
            ("all", "streams"): float(self._limits.listen_streams),
            ("all", "requests"): float(self._limits.http_requests_in_flight),
            ("all", "memory"): float(self._limits.memory_bytes),
        }
        metrics.show_tasks(self._views.tasks)
        with suppress(StorageError):  # without a state directory there is no disk to watch
            metrics.show_disk(directories.open_state(self._settings, "host"))
        certificate = self._certificate
        if certificate is not None:
            metrics.show_certificate(lambda: certificate.expires)
        return metrics

    def _make_webhook(self) -> Webhook | None:
        settings = self._settings
        events.feed.with_content = settings.event_content
        if not settings.webhook_url:
            return None

        logs.hide(settings.webhook_secret)
        webhook = Webhook(
            settings.webhook_url,
            settings.webhook_secret,
            self._clock,
            patterns=settings.webhook_events,
            environment=self._environment,
        )
        webhook.declare_metrics(self._metrics.metrics)
        return webhook

    @cached_property
    def _page_keys(self) -> tuple[bytes, ...]:
        # A cookie outlives the process only where the nonces of ended sessions do too. Keys for this purpose
        # alone, equal in all replicas that have the same state keys.
        keys = self._state_keys if self._replica is not None else (secrets.token_bytes(_KEY_BYTES),)
        return tuple(hmac.digest(key, b"dashboard", "sha256") for key in keys)

    @cached_property
    def _oauth_sign_in(self) -> OAuthSignIn | None:
        if self._oauth is None or not self._settings.oauth_client_id:
            return None

        keys, nonces, verify = self._page_keys, self._nonces, self._oauth.verify_id_token
        return make_oauth_sign_in(self._settings, self._environment, self._clock, keys, nonces, verify)

    def _make_dashboard(self) -> Dashboard:
        public_url = self._settings.public_url
        issuer = f"{self._settings.oauth_issuer} {self._settings.oauth_audience}" if self._oauth else ""
        now = self._clock.now
        ended = MemoryNonces(now) if self._replica is None else RedisNonces(self._replica.redis, now)
        return Dashboard(
            self._registry,
            SignIn(
                self._authenticator,
                self._tokens,
                self._page_keys,
                self._clock,
                ended=ended,
                public_url=public_url,
                issuer=issuer,
            ),
            SnapshotCollector(
                self._registry,
                self._metrics,
                self._views,
                self._history,
                self._clock,
                tokens=self._tokens,
            ),
            self._history,
            self._clock,
            count_rejection=self._metrics.rejections.add,
            tokens=self._tokens,
            token_store=None if self._tokens is None else announced_tokens(self._settings),
            peers=self._peers,
            audit=None if self._trail is None else self._trail.store,
            oauth=self._oauth_sign_in,
            public_url=public_url,
        )
