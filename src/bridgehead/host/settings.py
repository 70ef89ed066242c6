"""Host settings: address, access, limits, telemetry and events of `bridgehead serve`."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from bridgehead.mcp.http.guard import LOOPBACK
from bridgehead.runtime.directories import DatabaseSettings, ReplicaSettings, StateSettings
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.settings import (
    BYTES,
    FLAG,
    HTTP_URL,
    PATH,
    TEXT,
    WORDS,
    Kind,
    Setting,
    SettingError,
    choice,
    number,
    whole,
)
from bridgehead.runtime.tool_filter import TOOL_PREFIX, ToolFilterSettings

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_MAX_PORT = 65535
_PROCESS_BYTES = 64 * 1024 * 1024
"""The least memory for a process: with all bridges it has about 45 MB before its first request."""


def _networks(text: str) -> tuple[Network, ...]:
    words = (word.strip() for word in text.split(","))
    return tuple(ipaddress.ip_network(word, strict=False) for word in words if word)


def _url(text: str) -> str:
    parts = urlsplit(text)
    is_local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if not parts.netloc or not (parts.scheme == "https" or (parts.scheme == "http" and is_local)):
        raise ValueError(text)
    return text


def _public_url(text: str) -> str:
    """Parse a URL and drop a default port, because clients leave it out of the Host header."""
    parts = urlsplit(_url(text))
    if parts.query or parts.fragment:
        raise ValueError(text)
    default_port = ":443" if parts.scheme == "https" else ":80"
    return parts._replace(netloc=parts.netloc.removesuffix(default_port)).geturl()


NETWORKS = Kind(_networks, "addresses or networks separated by commas, such as 10.0.0.0/8,192.168.1.7")
SECURE_URL = Kind(_url, "an https:// address (http:// only on this machine)")
PUBLIC_URL = Kind(_public_url, f"{SECURE_URL.wanted}, without ? and #")


def _webhook_secret(text: str) -> str:
    if text.startswith("whsec_") and not base64.b64decode(text.removeprefix("whsec_"), validate=True):
        raise ValueError(text)
    return text


def _origins(text: str) -> tuple[str, ...]:
    for word in (words := WORDS.parse(text)):
        parts = urlsplit(word)
        is_origin = parts.scheme and parts.netloc and not (parts.path.strip("/") or parts.query)
        if word not in {"*", "null"} and not is_origin:
            raise ValueError(word)
    return words


def _host_names(text: str) -> tuple[str, ...]:
    for word in (words := WORDS.parse(text)):
        if "/" in word or any(sign.isspace() for sign in word):
            raise ValueError(word)
    return words


def _listen_host(text: str) -> str:
    host = text.strip("[]")
    if not host or "/" in host or any(sign.isspace() for sign in host):
        raise ValueError(text)
    if ":" in host:  # an IPv6 address: the port has its own setting
        ipaddress.IPv6Address(host.partition("%")[0])
    else:
        host.encode("idna")  # UnicodeError, which is a ValueError, for what cannot be a name
    return text


ORIGINS = Kind(_origins, "origins such as https://app.example, separated by commas, or *")
HOST_NAMES = Kind(_host_names, "names such as team.example or team.example:8443, separated by commas")
LISTEN_HOST = Kind(_listen_host, "a name or an IP address without a port; unix sockets are not supported")
WEBHOOK_SECRET = Kind(_webhook_secret, "a text, or whsec_ and base64")


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class OAuthSettings(LogSettings):
    """The authorisation server whose tokens are accepted."""

    oauth_issuer = Setting(
        "BRIDGEHEAD_OAUTH_ISSUER", SECURE_URL, None, "Accept access tokens (JWT) of this issuer."
    )
    oauth_audience = Setting(
        "BRIDGEHEAD_OAUTH_AUDIENCE",
        TEXT,
        None,
        "The `aud` that an access token must have. Use the public address if you can.",
    )
    oauth_jwks_url = Setting(
        "BRIDGEHEAD_OAUTH_JWKS_URL",
        SECURE_URL,
        None,
        "The address of the issuer's keys.",
        shown="what the issuer's metadata say",
    )
    oauth_per_minute = Setting(
        "BRIDGEHEAD_OAUTH_PER_MINUTE",
        whole(0, 10**6),
        600,
        "How many requests a caller with an OAuth token may make in a minute; 0 is no limit.",
    )
    oauth_client_id = Setting(
        "BRIDGEHEAD_OAUTH_CLIENT_ID",
        TEXT,
        None,
        "Let people sign in to the dashboard with OAuth: the client id of the host at the issuer.",
    )
    oauth_client_secret = Setting(
        "BRIDGEHEAD_OAUTH_CLIENT_SECRET",
        TEXT,
        "",
        "The client secret, if the issuer gave one.",
        secret=True,
    )


class HostSettings(OAuthSettings, ToolFilterSettings, StateSettings, DatabaseSettings, ReplicaSettings):
    """Every setting of `bridgehead serve`."""

    removed: ClassVar[tuple[str, ...]] = (
        "BRIDGEHEAD_BLOCKED_SECONDS",
        "BRIDGEHEAD_BODY_SECONDS",
        "BRIDGEHEAD_REDIS_SECONDS",
        "BRIDGEHEAD_REQUESTS_PER_CLIENT",
        "BRIDGEHEAD_STALLED_SECONDS",
        "BRIDGEHEAD_STREAMS_PER_CLIENT",
        "BRIDGEHEAD_TASKS",
        "BRIDGEHEAD_TASKS_PER_CLIENT",
        "BRIDGEHEAD_TASK_BYTES",
        "BRIDGEHEAD_TASK_BYTES_PER_CLIENT",
        "BRIDGEHEAD_WORKERS",
    )

    host = Setting(
        "MCP_SERVER_HOST", LISTEN_HOST, "localhost", "The address that the HTTP server listens on."
    )
    port = Setting("MCP_SERVER_PORT", whole(0, _MAX_PORT), 3000, "The port that the HTTP server listens on.")
    bridges = Setting("BRIDGEHEAD_BRIDGES", WORDS, (), "The bridges to serve.", shown="all")
    tool_prefix = Setting(
        "BRIDGEHEAD_TOOL_PREFIX",
        TOOL_PREFIX,
        "",
        "Put this before the name of every tool at `/mcp`, instead of the prefixes that the bridges have.",
    )
    auth = Setting(
        "BRIDGEHEAD_AUTH",
        choice("auto", "on", "off"),
        "auto",
        "Whether callers need a token. `auto`: they do, unless only this machine can reach the server.",
    )
    tokens_file = Setting(
        "BRIDGEHEAD_TOKENS_FILE",
        PATH,
        None,
        "The file that `bridgehead token` writes. Setting it turns auth on.",
        shown="host/tokens.json in the state directory",
    )
    public_url = Setting(
        "BRIDGEHEAD_PUBLIC_URL", PUBLIC_URL, None, "The address that clients use to reach the server."
    )
    allowed_hosts = Setting(
        "BRIDGEHEAD_ALLOWED_HOSTS", HOST_NAMES, (), "More names (Host headers) that the server answers to."
    )
    allowed_origins = Setting(
        "BRIDGEHEAD_ALLOWED_ORIGINS", ORIGINS, (), "Origins of web pages that may call the server (CORS)."
    )
    trusted_proxies = Setting(
        "BRIDGEHEAD_TRUSTED_PROXIES",
        NETWORKS,
        (),
        "Proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted.",
    )
    tls_cert = Setting(
        "BRIDGEHEAD_TLS_CERT", PATH, None, "A certificate chain (PEM). The server then uses https."
    )
    tls_key = Setting(
        "BRIDGEHEAD_TLS_KEY", PATH, None, "The key of the certificate, if it is in a separate file."
    )
    body_limit = Setting(
        "BRIDGEHEAD_BODY_LIMIT",
        BYTES,
        16 * 1024 * 1024,
        "The largest request body that is accepted.",
        shown="16mib",
    )
    idle_seconds = Setting(
        "BRIDGEHEAD_IDLE_SECONDS",
        number(0.1, 3600),
        75.0,
        "How many seconds a connection may be idle before it is closed. A load balancer has to close its "
        "idle connections sooner.",
    )
    connections = Setting(
        "BRIDGEHEAD_CONNECTIONS",
        whole(1, 10**6),
        10_000,
        "How many connections may be open at once, in each process. One address may have half of them; "
        "trusted proxies may have all.",
    )
    sessions_per_client = Setting(
        "BRIDGEHEAD_SESSIONS_PER_CLIENT",
        whole(1, 10**6),
        250,
        "How many sessions one token may have open (one address, without tokens). The limit for "
        "all is 1,000.",
    )
    session_seconds = Setting(
        "BRIDGEHEAD_SESSION_SECONDS",
        number(1, 10**6),
        1800.0,
        "How many seconds a session may be idle before it is closed. Many clients never close theirs.",
    )
    memory_limit = Setting(
        "BRIDGEHEAD_MEMORY_LIMIT",
        BYTES,
        None,
        "The memory that the process may use. Above it, events kept for resuming are dropped, "
        "then large requests are refused.",
        shown="three quarters of the memory of the container or machine",
    )
    task_seconds = Setting(
        "BRIDGEHEAD_TASK_SECONDS",
        number(1, 86_400),
        3600.0,
        "How many seconds a task is kept after it was created. A task that runs longer is stopped.",
    )
    drain_seconds = Setting(
        "BRIDGEHEAD_DRAIN_SECONDS",
        number(0, 3600),
        0.0,
        "How many seconds to keep serving after a signal to stop, while /readyz already fails.",
    )
    reuse_port = Setting(
        "BRIDGEHEAD_REUSE_PORT",
        FLAG,
        default=False,
        about="Share the port with other replicas on this machine. Needs `BRIDGEHEAD_REDIS_URL` and "
        "`BRIDGEHEAD_STATE_KEYS`.",
    )
    probe_seconds = Setting(
        "BRIDGEHEAD_PROBE_SECONDS",
        number(0, 86_400),
        60.0,
        "How often the host checks each bridge's game, files or API, in seconds. 0 turns this off.",
    )
    shutdown_seconds = Setting(
        "BRIDGEHEAD_SHUTDOWN_SECONDS",
        number(0, 3600),
        10.0,
        "How many seconds calls get to finish when the server stops.",
    )
    access_log = Setting(
        "BRIDGEHEAD_ACCESS_LOG",
        choice("all", "failures", "off"),
        "failures",
        "Which requests are logged.",
    )
    audit_days = Setting(
        "BRIDGEHEAD_AUDIT_DAYS",
        whole(0, 3650),
        90,
        "How many days the audit of calls is kept, in PostgreSQL or in a file. 0 turns the audit off.",
    )
    audit_lines = Setting(
        "BRIDGEHEAD_AUDIT_LINES",
        whole(1000, 10**9),
        1_000_000,
        "How many lines the audit has at most; the oldest are deleted. A million take about 300 MB.",
    )
    dashboard = Setting(
        "BRIDGEHEAD_DASHBOARD",
        FLAG,
        default=True,
        about="Serve the dashboard at `/`. If callers need a token, so do its visitors.",
    )
    webhook_url = Setting(
        "BRIDGEHEAD_WEBHOOK_URL",
        SECURE_URL,
        None,
        "Post events to this URL, as JSON.",
        secret=True,  # many receivers put a key into the path
    )
    webhook_secret = Setting(
        "BRIDGEHEAD_WEBHOOK_SECRET",
        WEBHOOK_SECRET,
        "",
        "The key that signs events (HMAC-SHA256): a text, or `whsec_` and base64.",
        secret=True,
    )
    webhook_events = Setting(
        "BRIDGEHEAD_WEBHOOK_EVENTS",
        WORDS,
        (),
        "The types of events to post, such as `call.failed,budget.*`.",
        shown="all",
    )
    event_content = Setting(
        "BRIDGEHEAD_EVENT_CONTENT",
        FLAG,
        default=False,
        about="Include the arguments of calls in their events.",
    )
    otel_endpoint = Setting(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        HTTP_URL,
        None,
        "Send a span for each request to this URL (OTLP over HTTP).",
    )

    def check(self) -> None:
        """Raise SettingError for values that do not go together."""
        if self.auth == "off" and not self.is_loopback:
            expected = "auto or on where others can reach MCP_SERVER_HOST"
            raise SettingError("BRIDGEHEAD_AUTH", "off", expected)
        if self.memory_limit and self.memory_limit < _PROCESS_BYTES:
            expected = f"{_PROCESS_BYTES // 1024 // 1024}mib or more"
            raise SettingError("BRIDGEHEAD_MEMORY_LIMIT", str(self.memory_limit), expected)
        # The system gives each connection to any of the processes. Without these, a session would reach a
        # process that does not know it.
        if self.reuse_port and not (self.redis_url and self.state_keys):
            name = "BRIDGEHEAD_STATE_KEYS" if self.redis_url else "BRIDGEHEAD_REDIS_URL"
            raise SettingError(
                name, "", "set where BRIDGEHEAD_REUSE_PORT is, so that replicas share sessions"
            )
        if self.tls_key and not self.tls_cert:
            raise SettingError("BRIDGEHEAD_TLS_CERT", "", "set where BRIDGEHEAD_TLS_KEY is")
        if bool(self.oauth_issuer) != bool(self.oauth_audience):
            name = "BRIDGEHEAD_OAUTH_AUDIENCE" if self.oauth_issuer else "BRIDGEHEAD_OAUTH_ISSUER"
            raise SettingError(name, "", "set where its counterpart is")
        if self.oauth_client_id and not self.oauth_issuer:
            raise SettingError("BRIDGEHEAD_OAUTH_ISSUER", "", "set where BRIDGEHEAD_OAUTH_CLIENT_ID is")
        if self.oauth_client_secret and not self.oauth_client_id:
            raise SettingError(
                "BRIDGEHEAD_OAUTH_CLIENT_ID", "", "set where BRIDGEHEAD_OAUTH_CLIENT_SECRET is"
            )

    @property
    def connections_per_address(self) -> int:
        """Half of all connections, so that one address cannot use them all."""
        return max(1, self.connections // 2)

    @property
    def is_loopback(self) -> bool:
        """Whether the server listens on an address that only this machine can reach."""
        return is_loopback(self.host)

    @property
    def shown_host(self) -> str:
        """The address that the server listens on, as written in a URL."""
        return f"[{self.host}]" if ":" in self.host and not self.host.startswith("[") else self.host

    @property
    def needs_auth(self) -> bool:
        """Whether callers must identify themselves."""
        if self.auth != "auto":
            return self.auth == "on"
        # Each of these three shows a proxy or a tunnel, behind which a loopback address is open to others.
        has_other_hosts = any(host not in LOOPBACK for host in self.allowed_hosts)
        is_local = self.is_loopback and not (self.trusted_proxies or self.public_url or has_other_hosts)
        return bool(self.tokens_file or self.oauth_issuer) or not is_local

    @property
    def hosts(self) -> frozenset[str]:
        """The Host headers that the server accepts; others are rejected (DNS rebinding)."""
        # A wildcard address is no name that a client can send.
        own = {self.host.lower(), f"[{self.host.strip('[]').lower()}]"} - {"0.0.0.0", "::", "[::]"}  # noqa: S104
        public = {self.public_url.partition("://")[2].partition("/")[0].lower()} if self.public_url else set()
        return LOOPBACK | own | public | set(self.allowed_hosts)

    options: Mapping[str, str | None] = {}
    """The options of the command line by attribute, to apply them again on a reload."""

    @classmethod
    def of(cls, environment: Mapping[str, str], **options: str | None) -> HostSettings:
        """Read the environment; `options` of the command line, by attribute, override it."""
        full = dict(environment)
        for attribute, value in options.items():
            if value is None:
                continue
            setting: Setting[Any] = getattr(cls, attribute)
            # Parsed here first, so that an error names the option and not its variable.
            try:
                is_valid = bool(value.strip())
                if is_valid:
                    setting.kind.parse(value)
            except ValueError:
                is_valid = False
            if not is_valid:
                raise SettingError(f"--{attribute.replace('_', '-')}", value, setting.kind.wanted)
            full[setting.name] = value
        settings = cls(full)
        settings.options = options
        return settings
