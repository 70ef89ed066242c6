"""Factory: puts the host's application together from settings, and says what is missing."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from bridgehead.mcp import Limits, Tasks, UsedStates
from bridgehead.mcp.http.guard import Guard
from bridgehead.runtime import directories, events, logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.stores import open_own_redis
from bridgehead.runtime.tasks import open_task_store
from bridgehead.runtime.timing import Clock

from .app import HostApplication
from .auth.admission import Admission
from .auth.authenticator import Authenticator, FileIssuer, Issuer
from .auth.revocation import AnnouncedTokens, TokenWatch
from .auth.throttle import Throttle
from .auth.tokens import FileTokens, TokenFile, Tokens, TokenStore
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
    from .dashboard.oauth_sign_in import OAuthSignIn
    from .database import HostDatabase
    from .events.webhook import Webhook
    from .replicas.replica import Replica
    from .telemetry.otlp import Telemetry
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


def announced_tokens(settings: HostSettings) -> TokenStore:
    """Return where tokens are, for whoever changes them: other hosts hear of it where there is Redis."""
    store = token_store(settings)
    if settings.redis_url is None:
        return store
    return AnnouncedTokens(store, partial(open_own_redis, settings))


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


class ApplicationFactory:
    """Makes the application of one process.

    Each part is made when the first other part names it, so the order in which they are made follows from
    what needs what.
    """

    def __init__(
        self,
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
    ) -> None:
        self._settings = settings
        self._manifests = manifests
        self._environment = environment
        self._clock = clock
        self._state_keys = state_keys
        self._telemetry = telemetry
        self._tracer = None if telemetry is None else telemetry.tracer
        self._workers = workers
        self._certificate = certificate
        self._replica = replica
        self._limits = limits_of(settings)
        self._guard = Guard(settings.hosts, settings.allowed_origins)
        self._history = History(clock)

    def make(self) -> HostApplication:
        """Put everything together. Raises BridgeError where callers need a token and there is none."""
        logs.also(log_fields)
        settings, tokens = self._settings, self._tokens  # a missing token is said before anything is opened
        return HostApplication(
            self._registry,
            self._views,
            self._admission,
            self._make_pages(),
            proxies=Proxies(settings.trusted_proxies),
            metrics=self._metrics,
            access_log=self._access_log,
            reloader=self._make_reloader(),
            clock=self._clock,
            watch=TokenWatch(tokens, self._clock),
            shutdown_seconds=settings.shutdown_seconds,
            telemetry=self._telemetry,
            webhook=_make_webhook(settings, self._environment, self._clock, self._metrics),
            replica=self._replica,
            database=self._database,
            dashboard=self._make_dashboard() if settings.dashboard else None,
        )

    # --- who may come in -----------------------------------------------------------------------------------

    @cached_property
    def _tokens(self) -> Tokens | None:
        tokens = open_tokens(self._settings)
        if self._replica is not None:
            self._replica.tokens = tokens
        return tokens

    @cached_property
    def _oauth(self) -> OAuthIssuer | None:
        return _oauth_issuer(self._settings, self._manifests, self._environment, self._clock)

    @cached_property
    def _authenticator(self) -> Authenticator:
        issuers: list[Issuer] = [] if self._tokens is None else [FileIssuer(self._tokens, self._clock)]
        if self._oauth is not None:
            issuers.append(self._oauth)
        return Authenticator(issuers, self._clock, self._metrics.auth_failures.add)

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

    # --- what is served ------------------------------------------------------------------------------------

    @cached_property
    def _database(self) -> HostDatabase | None:
        return _open_database(self._settings, self._tokens)

    @cached_property
    def _registry(self) -> Registry:
        return Registry(
            self._manifests,
            self._environment,
            is_traced=self._tracer is not None,
            probe_seconds=self._settings.probe_seconds,
            store_audit=None if self._database is None else self._database.add_audit,
            note_failure=self._history.note_failure if self._settings.dashboard else None,
        )

    @cached_property
    def _views(self) -> Views:
        return Views(
            self._registry,
            self._settings.tool_filter,
            self._guard,
            self._limits,
            Tasks(self._limits, partial(open_task_store, self._settings, "host")),
            state_keys=self._state_keys,
            session_prefix=_session_prefix(self._workers, self._replica),
            tracer=self._tracer,
            used_states=self._consent,
            on_error=self._count_error,
        )

    @cached_property
    def _consent(self) -> ReplicatedConsent | SharedConsent | UsedStates:
        return _open_consent(self._settings, self._workers, self._replica, self._clock)

    def _count_error(self, method: str, code: int) -> None:
        """Count an error of the views in the metrics, which are made later: they show the views' callers."""
        self._metrics.count_error(method, code)

    # --- what operators see --------------------------------------------------------------------------------

    @cached_property
    def _access_log(self) -> AccessLog:
        return AccessLog(self._settings.access_log, self._clock)

    @cached_property
    def _metrics(self) -> HostMetrics:
        metrics = HostMetrics(self._views.callers)
        metrics.limits |= _limits_for_all(self._settings, self._limits)
        metrics.show_tasks(self._views.tasks)
        certificate = self._certificate
        if certificate is not None:
            metrics.show_certificate(lambda: certificate.expires)
        return metrics

    def _make_pages(self) -> Pages:
        describe_resource = None if self._oauth is None else self._oauth.describe_resource
        return Pages(
            self._registry, self._metrics, describe_resource, self._workers, self._replica, self._database
        )

    def _make_reloader(self) -> Reloader:
        return Reloader(
            self._settings,
            self._environment,
            tokens=self._tokens,
            certificate=self._certificate,
            access_log=self._access_log,
        )

    @cached_property
    def _page_keys(self) -> tuple[bytes, ...]:
        return _derive(self._state_keys, b"dashboard")

    @cached_property
    def _oauth_sign_in(self) -> OAuthSignIn | None:
        if self._oauth is None or not self._settings.oauth_client_id:
            return None
        from .dashboard.oauth_sign_in import make_oauth_sign_in

        keys, used, verify = self._page_keys, self._consent, self._oauth.verify_id_token
        return make_oauth_sign_in(self._settings, self._environment, self._clock, keys, used, verify)

    def _make_dashboard(self) -> Dashboard:
        public_url = self._settings.public_url
        issuer = f"{self._settings.oauth_issuer} {self._settings.oauth_audience}" if self._oauth else ""
        worker = 0 if self._workers is None else self._workers.index
        return Dashboard(
            self._registry,
            self._views,
            SignIn(self._authenticator, self._tokens, self._page_keys, self._clock, public_url, issuer),
            Camera(self._registry, self._metrics, self._views, self._history, self._clock, worker),
            self._history,
            self._clock,
            count_rejection=self._metrics.rejections.add,
            count_call=self._admission.count,
            tokens=self._tokens,
            token_store=None if self._tokens is None else announced_tokens(self._settings),
            workers=self._workers,
            oauth=self._oauth_sign_in,
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
