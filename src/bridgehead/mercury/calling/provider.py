"""Provider: one API with its keys, models, prices, rate limit and circuit breaker.

The settings describe one, Mercury. A routes file can add others, which are OpenAI-compatible. Each fails
independently; budgets and the limits of clients count across all.
"""

from __future__ import annotations

from os import environ
from pathlib import Path
from typing import get_args

from bridgehead.runtime import events, logs
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.timing import Clock

from ..api.catalogue import Catalogue
from ..api.client import MERCURY_API, Access, ApiClient
from ..api.wire import VendorField
from ..errors import MercuryError
from ..settings import KEYS, URL, MercurySettings
from .keys import Keys, hide_key
from .rate_limits import RateAmounts, Scope
from .retries import Breaker
from .routes import MERCURY, ProviderEntry

_log = logs.logger("mercury.provider")
BREAKER_FAILURES = 10
"""Failures in a row after which no requests are sent. More than the tries of two calls, so that one unlucky
call never pauses the others."""
BREAKER_SECONDS = 15.0
"""How long the breaker stays open. Short, because only a single request then probes the service."""
_MINUTE = 60.0
_UNUSABLE = ("MISSING_API_KEY", "INVALID_API_KEY", "BILLING_REQUIRED", "SERVICE_ERROR", "SERVICE_UNAVAILABLE")
"""Failures of the model list that affect calls too. A server that merely lacks the list fails differently."""


class Provider:
    """An API that calls can go to."""

    def __init__(
        self,
        settings: MercurySettings,
        clock: Clock,
        name: str = MERCURY,
        entry: ProviderEntry | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self.url = settings.api_url.partition("?")[0]
        self.keys = Keys(
            settings,
            clock,
            variable="MERCURY_API_KEY" if entry is None else entry.key_env,
        )
        access = MERCURY_API
        self._settings: dict[str, str] = {}
        """For next steps: names of Mercury's settings, and this provider's words for them."""
        if entry is not None:
            place = f"of the provider {name} in the routes file"
            self._settings = {
                "MERCURY_API_KEY or MERCURY_API_KEY_FILE": entry.key_env or f"the key {place}",
                "MERCURY_API_URL": f"the url {place}",
            }
            if entry.timeout_ms is not None:
                self._settings["REQUEST_TIMEOUT"] = f"the timeout_ms {place}"
            query = entry.url.partition("?")[2]
            for value in entry.headers.values():
                hide_key(value.rpartition(" ")[2])  # also the key alone of "Bearer sk-…": an API may quote it
            headers = tuple(entry.headers.items())
            access = Access(f"provider {name}", f"?{query}" if query else "", entry.key_header, headers)
        self.api = ApiClient(settings, clock, access)
        self.request_seconds = settings.request_timeout / 1000
        """Time limit of one request, unless the call sets one."""
        self.unknown_fields = () if entry is None else tuple(set(get_args(VendorField)) - set(entry.knows))
        self.bills_refusals = entry is not None and entry.is_refusal_billed
        """Whether it charges for requests that it refuses with 400."""
        self.has_fim = True
        """Whether it has an endpoint for fill-ins of its own; false after a 404."""
        self.refuses_max_tokens: set[str] = set()
        """Models that take `max_completion_tokens` in its place."""
        self.refuses_temperature: set[str] = set()
        """Models that have one temperature only."""
        self.has_stream_options = True
        """Whether a stream may ask for its usage; false after a refusal."""
        terms = {} if entry is None else entry.models
        self.catalogue = Catalogue(self.api, self.keys, clock, settings, terms)
        self.problem = ""
        """The failure of the last health check; empty if it succeeded."""
        self.breaker = Breaker(
            BREAKER_FAILURES,
            BREAKER_SECONDS,
            self._publish_breaker,
        )
        self.rate_limit: Scope | None = None
        if entry is not None and entry.requests_per_minute is not None:
            limits = RateAmounts(entry.requests_per_minute)
            setting = "requests_per_minute in the routes file"
            self.rate_limit = Scope(f"the provider {name}", limits, _MINUTE, f"provider:{name}", setting)

    def name_settings(self, error: MercuryError) -> None:
        """Let the next step of an error name the settings of this provider."""
        for setting, own in self._settings.items():
            if error.next_step and setting in error.next_step:
                error.advise(error.next_step.replace(setting, own))

    async def close(self) -> None:
        """Close all connections."""
        await self.api.close()

    def _publish_breaker(self, is_open: bool) -> None:  # noqa: FBT001 - as the breaker calls it
        kind = "breaker.opened" if is_open else "breaker.closed"
        events.publish(kind, bridge="mercury", provider=self.name)

    async def check(self, seconds: float) -> None:
        """Check that the API answers, with a request for the list of models, which is free."""
        try:
            await self.api.fetch_models(self.keys.pick(), seconds)
        except MercuryError as error:
            # A server that refuses the list itself (a 404) is up: not every compatible one has a list.
            is_there = error.status is not None and not error.is_outage and error.code not in _UNUSABLE
            self.problem = "" if is_there else str(error)
        else:
            self.problem = ""


def make_provider(name: str, entry: ProviderEntry, settings: MercurySettings, clock: Clock) -> Provider:
    """Make a provider of a routes file: the settings with its own address, keys and time limit."""
    keys: tuple[str, ...] = ()
    try:
        if entry.key_env:
            # An unset variable is not an error here: only calls to this provider fail, with that reason.
            keys = KEYS.parse(environ[entry.key_env]) if environ.get(entry.key_env) else ()
        elif not entry.key_file:
            keys = KEYS.parse(entry.key)
        own = {
            "MERCURY_API_URL": URL.parse(entry.url.partition("?")[0]),
            "MERCURY_API_KEY": keys,
            "MERCURY_API_KEY_FILE": Path(entry.key_file).expanduser() if entry.key_file else None,
            "REQUEST_TIMEOUT": entry.timeout_ms or settings.request_timeout,
        }
        for text in (entry.key_header, entry.url.partition("?")[2], *entry.headers, *entry.headers.values()):
            # A line break would inject headers.
            if not (text.isascii() and text.isprintable()):
                raise ValueError(text)  # noqa: TRY301
    except ValueError:
        wanted = f"a routes file (the url, a header or the key of the provider {name} cannot be used)"
        raise SettingError("MERCURY_ROUTES_FILE", str(settings.routes_file), wanted) from None
    return Provider(settings.replace(own), clock, name, entry)
