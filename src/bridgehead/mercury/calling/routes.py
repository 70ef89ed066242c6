"""Routes: choose provider and model of a call by its model name, tool, client and size.

Read from one TOML file. The first matching route is used. Its first target is asked; the others only if that
one fails before it has answered and cannot have billed. Pure, except for reading the file.

    [providers.local]
    url = "http://127.0.0.1:11434/v1"

    [[routes]]
    model = "fast"
    to = ["local/qwen3", "mercury/mercury-2"]
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from bridgehead.runtime.settings import SettingError

from ..api.prices import Prices
from ..api.wire import VendorField

MERCURY = "mercury"
"""The provider that the settings describe."""
_VARIABLE = "MERCURY_ROUTES_FILE"
_TOKENS = 1_000_000

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Money = Annotated[float, Meta(ge=0)]


class ModelTerms(Struct, forbid_unknown_fields=True, frozen=True):
    """Prices of a model, in US dollars per million tokens (and per request), and its maximum output."""

    prompt_usd: Money
    completion_usd: Money
    request_usd: Money = 0.0
    """For each request, beside its tokens."""
    max_output: Annotated[int, Meta(ge=1)] | None = None

    @property
    def prices(self) -> Prices:
        """The prices of one token."""
        prompt = self.prompt_usd / _TOKENS
        return Prices(prompt, self.completion_usd / _TOKENS, prompt, self.request_usd)


class ProviderEntry(Struct, forbid_unknown_fields=True, frozen=True):
    """An OpenAI-compatible API."""

    url: str
    """May end with a query, such as `?api-version=…`, which is then part of every request."""
    key: str = "EMPTY"
    """Servers without keys accept any."""
    key_file: str = ""
    key_env: str = ""
    """The name of the environment variable with the key."""
    key_header: str = "Authorization"
    """Azure takes the key in `api-key`."""
    headers: dict[str, str] = {}
    timeout_ms: Annotated[int, Meta(ge=1)] | None = None
    """Replaces REQUEST_TIMEOUT."""
    requests_per_minute: Annotated[int, Meta(ge=1)] | None = None
    knows: list[VendorField] = []
    """Mercury's own fields that it accepts; the others are not sent to it."""
    models: dict[str, ModelTerms] = {}
    bills_refusals: bool = False
    """Whether it charges for requests that it refuses with 400, as Azure does."""

    @property
    def is_refusal_billed(self) -> bool:
        """The same, known of Azure without being told."""
        host = urlsplit(self.url).hostname or ""
        return self.bills_refusals or host.endswith(".azure.com")


class Routed(Protocol):
    """The part of a call that routes depend on."""

    model: str
    tool: str
    client: str
    body: bytes
    is_model_named: bool


class Target(Struct, frozen=True):
    """A model of a provider; an empty model means the requested one."""

    provider: str
    model: str


class Route(Struct, forbid_unknown_fields=True, frozen=True):
    """Conditions, all of which must match, and the targets of a matching call."""

    to: Annotated[list[str], Meta(min_length=1)]
    model: str = ""
    tool: str = ""
    client: str = ""
    min_bytes: Annotated[int, Meta(ge=0)] = 0
    max_bytes: Annotated[int, Meta(ge=0)] | None = None

    @property
    def targets(self) -> list[Target]:
        """The targets, in the order in which they are tried."""
        return [Target(provider, model) for provider, _, model in (place.partition("/") for place in self.to)]

    def fits(self, call: Routed) -> bool:
        """Return whether a call matches. A route without a model is for calls that name none."""
        # A caller that names a model gets that one, unless a route is about this very name.
        if call.is_model_named and not self.model:
            return False
        size = len(call.body)
        return (
            _matches(self.model, call.model)
            and _matches(self.tool, call.tool)
            and _matches(self.client, call.client)
            and self.min_bytes <= size
            and (self.max_bytes is None or size <= self.max_bytes)
        )


class Routes(Struct, forbid_unknown_fields=True, frozen=True):
    """The content of the routes file."""

    providers: dict[Name, ProviderEntry] = {}
    routes: list[Route] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The model names that routes define, without patterns."""
        names = (route.model for route in self.routes if route.model and not set("*?[") & set(route.model))
        return tuple(dict.fromkeys(names))

    def find(self, call: Routed) -> list[Target]:
        """Return the targets of a call; none if no route matches."""
        for route in self.routes:
            if route.fits(call):
                return route.targets
        return []


def read_routes(file: Path | None) -> Routes:
    """Read the file; raises SettingError, which names the problem."""
    if file is None:
        return Routes()
    import tomllib

    try:
        routes = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8-sig")), Routes)
    except OSError as problem:
        raise SettingError(_VARIABLE, str(file), f"a file that can be read ({problem.strerror})") from None
    except ValueError as problem:  # invalid UTF-8, invalid TOML, or wrong fields
        raise SettingError(_VARIABLE, str(file), f"a routes file ({problem})") from None
    for number, route in enumerate(routes.routes, 1):
        for target in route.targets:
            if target.provider != MERCURY and target.provider not in routes.providers:
                known = ", ".join((MERCURY, *routes.providers))
                wanted = f"a routes file (route {number} goes to {target.provider!r}; there are {known})"
                raise SettingError(_VARIABLE, str(file), wanted)
    return routes


def _matches(pattern: str, value: str) -> bool:
    if not pattern or pattern == value:
        return True

    return fnmatchcase(value, pattern)
