"""Provider: one API with its keys, its models and prices, its own limit and its own breaker.

The settings describe one, Mercury. A routes file can name others, which are OpenAI-compatible. What one of
them fails at says nothing of the others; money and the limits of clients are counted over all.
"""

from __future__ import annotations

from bridgehead.runtime import events
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.timing import Clock

from ..api.catalogue import Catalogue
from ..api.client import ApiClient
from ..errors import MercuryError
from ..settings import KEYS, URL, MercurySettings
from .keys import Keys
from .limits import Window
from .retries import Breaker
from .routes import MERCURY, ProviderEntry

_MINUTE = 60.0
_UNUSABLE = ("MISSING_API_KEY", "INVALID_API_KEY", "BILLING_REQUIRED", "SERVICE_ERROR", "SERVICE_UNAVAILABLE")
"""Failures that calls would meet as well; servers that have no list of models answer in another way."""


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
        self.url = settings.api_url
        self.keys = Keys(settings, clock)
        self.api = ApiClient(settings, clock)
        terms = {} if entry is None else entry.models
        self.catalogue = Catalogue(self.api, self.keys, clock, settings, terms)
        self.problem = ""
        """What was wrong when it was last checked, without a call; nothing where it answered."""
        self.breaker = Breaker(settings.breaker_failures, settings.breaker_wait / 1000, self._tell_breaker)
        most = None if entry is None else entry.requests_per_minute
        self._window = None if most is None else Window(most, _MINUTE)

    def _tell_breaker(self, is_open: bool) -> None:  # noqa: FBT001 - as the breaker calls it
        kind = "breaker.opened" if is_open else "breaker.closed"
        events.publish(kind, bridge="mercury", provider=self.name)

    async def check(self, seconds: float) -> None:
        """Ask for the list of models, which costs nothing, to learn whether there is anybody."""
        try:
            await self.api.fetch_models(self.keys.pick(), seconds)
        except MercuryError as error:
            is_there = error.status is not None and not error.is_outage and error.code not in _UNUSABLE
            self.problem = "" if is_there else str(error)
        else:
            self.problem = ""

    def admit(self, now: float) -> None:
        """Count a request; raises where the provider's own limit is reached."""
        if self._window is None:
            return
        delay = self._window.delay(1, now)
        if delay:
            raise MercuryError(
                "LOCAL_RATE_LIMIT",
                f"The provider {self.name} is asked {self._window.most} times a minute, and no more.",
                retry_after=delay,
                next_step=f"Try again in {delay:.3g} s, or raise requests_per_minute in the routes file.",
            )
        self._window.take(1, now)


def make_provider(name: str, entry: ProviderEntry, settings: MercurySettings, clock: Clock) -> Provider:
    """Make a provider of a routes file: as the settings say, but with its own address and keys."""
    from pathlib import Path

    try:
        own = {
            "MERCURY_API_URL": URL.parse(entry.url),
            "MERCURY_API_KEY": () if entry.key_file else KEYS.parse(entry.key),
            "MERCURY_API_KEY_FILE": Path(entry.key_file).expanduser() if entry.key_file else None,
        }
    except ValueError:
        wanted = f"a routes file (the url or the key of the provider {name} cannot be used)"
        raise SettingError("MERCURY_ROUTES_FILE", str(settings.routes_file), wanted) from None
    return Provider(settings.replace(own), clock, name, entry)
