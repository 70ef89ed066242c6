"""Settings of the mercury bridge. The contract's settings keep its names, units and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar

from bridgehead.runtime.directories import DatabaseSettings, ReplicaSettings, StateSettings
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.settings import (
    BYTES,
    FLAG,
    PATH,
    WORDS,
    Kind,
    Setting,
    SettingError,
    choice,
    number,
    whole,
)
from bridgehead.runtime.tool_filter import ALL_TOOLSETS, Toolsets, prefix_setting

SIMULATED_KEY = "sk_simulated"
API_URL = "https://api.inceptionlabs.ai/v1"
MODEL = "mercury-coder-small"
_DAY_MS = 86_400_000
_TOKENS_LIMIT = 10**12
_LAST_PORT = 65_535


def _parse_url(text: str) -> str:
    """Parse an address, which may end with a query that belongs to every request."""
    address, mark, query = text.partition("?")
    scheme, _, rest = address.partition("://")
    is_clean = text.isprintable() and not any(c.isspace() or c == "#" for c in text)
    if scheme not in ("https", "http") or not is_clean or not is_authority(rest.partition("/")[0]):
        raise ValueError(text)
    return address.rstrip("/") + mark + query


def is_authority(text: str) -> bool:
    """Return whether a text has the form [credentials@]host[:port]."""
    host = text.rpartition("@")[2]
    if not host.endswith("]") and ":" in host:
        host, _, port = host.rpartition(":")
        if not (port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT):
            return False
    return bool(host) and not any(c.isspace() or c in "/\\" for c in host)


def _parse_keys(text: str) -> tuple[str, ...]:
    keys = tuple(key for key in (piece.strip() for piece in text.replace("\n", ",").split(",")) if key)
    if not keys or not all(is_key(key) for key in keys):
        raise ValueError
    return keys


def is_key(text: str) -> bool:
    """Return whether a text can be a key: printable, without spaces, and not a placeholder."""
    return (
        text.isascii() and text.isprintable() and not any(c in " \"'<>\\" for c in text) and "..." not in text
    )


def _parse_target(text: str) -> tuple[str, str]:
    """Parse `provider/model`; without a provider it is a model of the API."""
    provider, slash, model = text.partition("/")
    return (provider, model) if slash else ("mercury", text)


def _parse_client_budgets(text: str) -> tuple[tuple[str, float | None, float | None], ...]:
    """Parse `name=day/month, …`; either amount may be missing. A name may contain "="."""
    budgets = []
    for entry in text.split(","):
        name, _, amounts = entry.strip().rpartition("=")
        day, _, month = amounts.partition("/")
        if not name or not amounts:
            raise ValueError(entry)
        budgets.append((name.strip(), _dollars(day), _dollars(month)))
    return tuple(budgets)


def _dollars(text: str) -> float | None:
    return number(0, 1e9).parse(text) if text.strip() else None


URL = Kind(_parse_url, "a URL that begins with https:// or http://, such as https://api.example/v1")
WORD = Kind(str, "a word")
TARGET = Kind(_parse_target, "a model, or provider/model of the routes file")
KEYS = Kind(
    _parse_keys,
    "one key, or several separated by commas (printable characters, without spaces or quotes)",
    "key list",
)
CLIENT_BUDGETS = Kind(
    _parse_client_budgets, "names with dollars a day, and a month behind a slash, such as ci=1,alice=5/50"
)
TOOLSETS = Toolsets(
    "MERCURY_TOOLSETS",
    {
        "edits": ("mercury_edit_completion", "mercury_apply_edit", "mercury_next_edit"),
        "decide": ("mercury_decide",),
        "batch": ("mercury_batch",),
        "usage": ("mercury_usage",),
    },
)
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
"""Also read in lower case, as curl and others do; upper case wins."""
_MS = whole(1, _DAY_MS)
_MS_OR_NONE = whole(0, _DAY_MS)


class MercurySettings(StateSettings, DatabaseSettings, ReplicaSettings, LogSettings):
    """All settings of the mercury bridge."""

    common: ClassVar[tuple[str, ...]] = (
        "MERCURY_API_KEY",
        "MERCURY_API_KEY_FILE",
        "MERCURY_BUDGET_USD",
        "MERCURY_MONTH_BUDGET_USD",
        "MERCURY_MODEL",
        "MERCURY_EDIT_MODEL",
        "MERCURY_API_URL",
        "MERCURY_TOOLSETS",
        "MERCURY_FILES",
        "RATE_LIMIT_MAX",
    )
    removed: ClassVar[tuple[str, ...]] = (
        "BRIDGEHEAD_REDIS_SECONDS",
        "CACHE_MAX_BYTES",
        "MERCURY_BREAKER_FAILURES",
        "MERCURY_BREAKER_WAIT",
        "MERCURY_CONNECT_TIMEOUT",
        "MERCURY_FIRST_BYTE_TIMEOUT",
        "MERCURY_HEARTBEAT_MS",
        "MERCURY_HTTP2",
        "MERCURY_MAX_CONNECTIONS",
        "MERCURY_MAX_FILE_SIZE",
        "MERCURY_MAX_RESPONSE_SIZE",
        "MERCURY_USAGE_DAYS",
    )

    api_keys = Setting[tuple[str, ...]](
        "MERCURY_API_KEY",
        KEYS,
        (),
        "The key of the Mercury API, or several separated by commas. Without one, every call "
        "fails and says so.",
        secret=True,
    )
    api_key_file = Setting(
        "MERCURY_API_KEY_FILE", PATH, None, "A file with the key or keys, read again when it changes."
    )
    api_url = Setting(
        "MERCURY_API_URL",
        URL,
        API_URL,
        "The address of the API.",
        receives=("MERCURY_API_KEY", "MERCURY_API_KEY_FILE"),
    )
    model = Setting(
        "MERCURY_MODEL",
        WORD,
        MODEL,
        "The model for calls that name none.",
    )
    fim_model = Setting(
        "MERCURY_FIM_MODEL", WORD, "", "The model for fill-ins that name none. If empty, MERCURY_MODEL."
    )
    edit_model = Setting(
        "MERCURY_EDIT_MODEL", WORD, "", "The model for edits that name none. If empty, MERCURY_MODEL."
    )
    allowed_models = Setting[tuple[str, ...]](
        "MERCURY_ALLOWED_MODELS", WORDS, (), "The models that may be used. If empty, all."
    )
    embedding_target = Setting(
        "MERCURY_EMBEDDING_MODEL",
        TARGET,
        ("mercury", ""),
        "A model that makes vectors, of the API or as provider/model of the routes file. If set, "
        "mercury_embeddings is offered.",
        shown="none",
    )
    fine_tuning = Setting(
        "MERCURY_FINE_TUNING",
        WORD,
        "",
        "The provider whose fine-tuning jobs mercury_fine_tuning_status reports: one of the routes file, or "
        "mercury for the API. If set, the tool is offered.",
    )
    toolsets = Setting(
        TOOLSETS.variable,
        TOOLSETS.kind,
        (ALL_TOOLSETS,),
        "Groups of tools to offer besides chat, streams, fill-in and the list of models: edits, decide, "
        "batch, usage; `all`, or `core` for none of them.",
    )
    tool_prefix = prefix_setting("MERCURY_TOOL_PREFIX", "m_")
    files = Setting(
        "MERCURY_FILES",
        FLAG,
        default=False,
        about="Let calls name files inside the client's roots, which the server then reads.",
    )
    routes_file = Setting(
        "MERCURY_ROUTES_FILE",
        PATH,
        None,
        "A TOML file that maps model names, tools, clients and sizes to models and other providers.",
    )
    budget_usd = Setting[float | None](
        "MERCURY_BUDGET_USD",
        number(0, 1e9),
        None,
        "US dollars that all processes of this user may spend in a day (UTC).",
        shown="no budget",
    )
    month_budget_usd = Setting[float | None](
        "MERCURY_MONTH_BUDGET_USD",
        number(0, 1e9),
        None,
        "US dollars that all processes of this user may spend in a calendar month (UTC).",
        shown="no budget",
    )
    client_budget_usd = Setting[float | None](
        "MERCURY_CLIENT_BUDGET_USD",
        number(0, 1e9),
        None,
        "US dollars that each client may spend a day. A client is a token of `bridgehead serve`; all calls "
        "without a token are one client.",
        shown="no budget",
    )
    client_month_budget_usd = Setting[float | None](
        "MERCURY_CLIENT_MONTH_BUDGET_USD",
        number(0, 1e9),
        None,
        "US dollars that each client may spend in a calendar month.",
        shown="no budget",
    )
    client_budgets = Setting[tuple[tuple[str, float | None, float | None], ...]](
        "MERCURY_CLIENT_BUDGETS",
        CLIENT_BUDGETS,
        (),
        "Budgets for single clients, by token name, that replace those two, such as ci=1,alice=5/50.",
    )

    transport = Setting("MCP_TRANSPORT", choice("stdio", "http"), "stdio", "The transport that clients use.")
    host = Setting("MCP_SERVER_HOST", WORD, "localhost", "The address that the HTTP server listens on.")
    port = Setting("MCP_SERVER_PORT", whole(0, 65535), 3000, "The port that the HTTP server listens on.")

    log_content = Setting("LOG_CONTENT", FLAG, default=False, about="Log prompts and completions as well.")

    request_timeout = Setting(
        "REQUEST_TIMEOUT",
        _MS,
        30_000,
        "How many milliseconds the API may take to answer a request, or to begin a stream.",
    )
    total_timeout = Setting(
        "MERCURY_TOTAL_TIMEOUT", _MS, 120_000, "How many milliseconds a call may take, including retries."
    )
    idle_timeout = Setting(
        "MERCURY_IDLE_TIMEOUT", _MS, 20_000, "How many milliseconds may pass between two pieces of a stream."
    )
    max_request_size = Setting(
        "MAX_REQUEST_SIZE", BYTES, 1024**2, "The largest arguments of a call.", shown="1mb"
    )
    max_retries = Setting("MERCURY_MAX_RETRIES", whole(0, 20), 3, "How often a failed request is retried.")
    retry_delay = Setting(
        "MERCURY_RETRY_DELAY",
        _MS,
        1_000,
        "How many milliseconds to wait before the first retry. Doubles each time, up to 10 seconds.",
    )
    https_proxy = Setting("HTTPS_PROXY", WORD, "", "The proxy for an API at https://.", secret=True)
    http_proxy = Setting("HTTP_PROXY", WORD, "", "The proxy for an API at http://.", secret=True)
    all_proxy = Setting("ALL_PROXY", WORD, "", "The proxy for everything that has no other.", secret=True)
    no_proxy = Setting[tuple[str, ...]](
        "NO_PROXY", WORDS, (), "Hosts, domains and networks that are reached without a proxy."
    )

    cache_enabled = Setting("CACHE_ENABLED", FLAG, default=True, about="Turn the cache on.")
    cache_completions = Setting(
        "CACHE_COMPLETIONS", FLAG, default=False, about="Cache completions, unless a call says otherwise."
    )
    cache_ttl = Setting(
        "CACHE_TTL", whole(1, 10**7), 300, "How many seconds a completion stays in the cache."
    )
    cache_max_size = Setting(
        "CACHE_MAX_SIZE", whole(1, 10**7), 1_000, "How many completions the cache holds."
    )

    cache_shared = Setting(
        "CACHE_SHARED",
        FLAG,
        default=False,
        about="Answer a token from the cached answers of others too, and send identical calls of several "
        "tokens once. A token can then find out what others have asked.",
    )

    rate_limit_enabled = Setting("RATE_LIMIT_ENABLED", FLAG, default=True, about="Turn rate limits on.")
    rate_limit_window = Setting(
        "RATE_LIMIT_WINDOW", _MS, 60_000, "The length of the window that limits apply to, in milliseconds."
    )
    rate_limit_max = Setting(
        "RATE_LIMIT_MAX",
        whole(0, 10**9),
        100,
        "Calls of one client in a window. 0 is no limit.",
    )
    rate_limit_input_tokens = Setting(
        "RATE_LIMIT_INPUT_TOKENS", whole(0, _TOKENS_LIMIT), 0, "Input tokens of one client in a window."
    )
    rate_limit_output_tokens = Setting(
        "RATE_LIMIT_OUTPUT_TOKENS", whole(0, _TOKENS_LIMIT), 0, "Output tokens of one client in a window."
    )
    server_limit_max = Setting(
        "RATE_LIMIT_SERVER_MAX", whole(0, 10**9), 1_000, "Calls of all clients in a window."
    )
    server_limit_input_tokens = Setting(
        "RATE_LIMIT_SERVER_INPUT_TOKENS",
        whole(0, _TOKENS_LIMIT),
        0,
        "Input tokens of all clients in a window.",
    )
    server_limit_output_tokens = Setting(
        "RATE_LIMIT_SERVER_OUTPUT_TOKENS",
        whole(0, _TOKENS_LIMIT),
        0,
        "Output tokens of all clients in a window.",
    )
    rate_limit_wait = Setting(
        "RATE_LIMIT_WAIT_MS",
        _MS_OR_NONE,
        0,
        "How many milliseconds a call may wait for a rate limit.",
    )

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Lower case first, so that upper case wins.
        proxies = {name: value for name in _PROXIES if (value := environment.get(name.lower()))}
        super().__init__({**proxies, **environment})

    @property
    def is_simulated(self) -> bool:
        """Whether the key is that of the simulated API, whose money never enters the real books."""
        return SIMULATED_KEY in self.api_keys

    @property
    def books(self) -> str:
        """The part of the state that has usage and budgets."""
        return "mercury-simulated" if self.is_simulated else "mercury"

    @property
    def books_url(self) -> str | None:
        """The database with usage and budgets; None if they are in a file."""
        return None if self.is_simulated else self.database_url

    def replace(self, values: Mapping[str, Any]) -> MercurySettings:
        """Return a copy with other values, by variable name and already parsed."""
        changed = copy(self)
        changed.values = {**self.values, **values}
        return changed

    def check(self) -> None:
        """Refuse combinations of values that are invalid."""
        if self.api_keys and self.api_key_file is not None:
            raise SettingError(
                "MERCURY_API_KEY_FILE", str(self.api_key_file), "unset where MERCURY_API_KEY is set"
            )
        for name in ("MERCURY_MODEL", "MERCURY_FIM_MODEL", "MERCURY_EDIT_MODEL"):
            model = self.values[name]
            if self.allowed_models and model and model not in self.allowed_models:
                allowed = ", ".join(self.allowed_models)
                raise SettingError(name, model, f"one of MERCURY_ALLOWED_MODELS ({allowed})")
        budgets = (
            *(self.budget_usd, self.month_budget_usd),
            *(self.client_budget_usd, self.client_month_budget_usd),
        )
        has_budget = self.client_budgets != () or any(amount is not None for amount in budgets)
        if self.redis_url is not None and self.database_url is None and has_budget:
            # Redis means several replicas. It may lose a write that it acknowledged; a budget must not.
            wanted = "a postgresql:// address: budgets of replicas are kept in PostgreSQL, not in Redis"
            raise SettingError("BRIDGEHEAD_DATABASE_URL", "", wanted)
