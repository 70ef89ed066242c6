"""Making: puts the host's application together from settings, and says what would be missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bridgehead.mcp import Limits
from bridgehead.mcp.http.guard import Guard
from bridgehead.runtime import directories, logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.timing import Clock

from . import request_ids, routes
from .access_log import AccessLog
from .accounts import Accounts
from .admission import Admission
from .app import HostApplication
from .auth import FromFile, GateKeeper, Issuer
from .forwarded import Proxies
from .pages import Pages
from .registry import Registry
from .settings import HostSettings
from .siblings import Siblings
from .throttle import Throttle
from .token_watch import TokenWatch
from .tokens import TokenFile, Tokens
from .tracing import Tracer
from .views import Views

if TYPE_CHECKING:
    from pathlib import Path

    from .oauth import AuthorisationServer


def tokens_path(settings: HostSettings) -> Path:
    """Return where the file of tokens is."""
    return settings.tokens_file or directories.open_state(settings, "host") / "tokens.json"


def open_tokens(settings: HostSettings) -> Tokens | None:
    """Read the tokens that let callers in; None where nobody is asked. Raises BridgeError where none is."""
    if not settings.needs_auth:
        return None
    file = TokenFile(tokens_path(settings))
    if not file.read().tokens and not settings.oauth_issuer:
        raise BridgeError(
            f"Callers of this server (MCP_SERVER_HOST is {settings.host!r}) need a token, and there is none.",
            next_step="Make one with bridgehead token add NAME, or set BRIDGEHEAD_OAUTH_ISSUER. Without "
            "either, the server can only listen on localhost.",
        )
    tokens = Tokens(file)
    tokens.read()
    return tokens


def limits_of(settings: HostSettings) -> Limits:
    """Return the engine's limits as the settings have them."""
    return Limits(
        message_bytes=settings.body_limit,
        body_seconds=settings.body_seconds,
        shutdown_seconds=settings.shutdown_seconds,
    )


def make_application(
    settings: HostSettings,
    manifests: Mapping[str, Manifest],
    environment: Mapping[str, str],
    clock: Clock,
    *,
    state_key: bytes,
    tracer: Tracer | None = None,
    siblings: Siblings | None = None,
) -> HostApplication:
    """Make the application of one process."""
    logs.also(request_ids.logged)
    tokens = open_tokens(settings)
    server = _authorisation_server(settings, manifests, clock)
    issuers: list[Issuer] = [] if tokens is None else [FromFile(tokens, clock)]
    if server is not None:
        issuers.append(server)
    registry = Registry(manifests, environment, tracer=tracer)
    guard = Guard(settings.hosts, settings.allowed_origins)
    accounts = Accounts()
    return HostApplication(
        registry,
        Views(registry, settings.tool_filter, guard, limits_of(settings), state_key),
        Admission(
            routes.table(manifests, with_oauth=server is not None),
            guard,
            GateKeeper(issuers, clock, accounts.auth_failures.add),
            Throttle(clock.monotonic),
            *([] if server is None else [server.challenge]),
        ),
        Pages(registry, accounts, None if server is None else server.metadata, siblings),
        proxies=Proxies(settings.trusted_proxies),
        accounts=accounts,
        access_log=AccessLog(settings.access_log, clock),
        clock=clock,
        watch=TokenWatch(tokens, clock),
        shutdown_seconds=settings.shutdown_seconds,
    )


def _authorisation_server(
    settings: HostSettings, bridges: Iterable[str], clock: Clock
) -> AuthorisationServer | None:
    if not settings.oauth_issuer or not settings.oauth_audience:
        return None
    from .keys import fetched
    from .oauth import AuthorisationServer

    return AuthorisationServer(
        settings.oauth_issuer,
        settings.oauth_audience,
        settings.oauth_jwks_url,
        bridges=bridges,
        public_url=settings.public_url,
        clock=clock,
        fetch=fetched,
    )
