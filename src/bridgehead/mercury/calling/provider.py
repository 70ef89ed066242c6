"""Provider: one API with its keys, its models and prices, its own limit and its own breaker.

The settings describe one, Mercury. A routes file can name others, which are OpenAI-compatible. What one of
them fails at says nothing of the others; money and the limits of clients are counted over all.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from bridgehead.runtime import events, logs
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.timing import Clock

from ..api.catalogue import Catalogue
from ..api.client import ApiClient
from ..errors import MercuryError
from ..settings import KEYS, URL, MercurySettings
from .keys import Keys
from .rate_limits import Amounts, Scope
from .retries import Breaker
from .routes import MERCURY, ProviderEntry

if TYPE_CHECKING:
    from bridgehead.runtime.stores.cooldowns import Cooldowns
    from bridgehead.runtime.stores.redis import Redis

_log = logs.logger("mercury.provider")
_MINUTE = 60.0
_BREAKER = "breaker"
_KEY = "key:"
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
        redis: Redis | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self.url = settings.api_url
        self._cooldowns: Cooldowns | None = None
        if redis is not None:
            from bridgehead.runtime.stores.cooldowns import Cooldowns

            self._cooldowns = Cooldowns(redis, self._space)
        self.keys = Keys(settings, clock, self._tell_aside)
        self.api = ApiClient(settings, clock)
        terms = {} if entry is None else entry.models
        self.catalogue = Catalogue(self.api, self.keys, clock, settings, terms)
        self.problem = ""
        """What was wrong when it was last checked, without a call; nothing where it answered."""
        self._breaker_seconds = settings.breaker_wait / 1000
        self.breaker = Breaker(
            settings.breaker_failures, self._breaker_seconds, self._tell_breaker, self._tell_probe
        )
        self.rate_limit: Scope | None = None
        if entry is not None and entry.requests_per_minute is not None:
            limits = Amounts(entry.requests_per_minute)
            setting = "requests_per_minute in the routes file"
            self.rate_limit = Scope(f"the provider {name}", limits, _MINUTE, f"provider:{name}", setting)

    # --- what other replicas know: the service while its breaker is open, a refused key --------------------

    @property
    def _space(self) -> str:
        # By its address too: another deployment may call another service by the same name.
        return f"mercury:{self.name}:{sha256(self.url.encode()).hexdigest()[:16]}"

    def start(self) -> None:
        """Follow other replicas, where there are some."""
        if self._cooldowns is not None:
            self._cooldowns.start(
                lambda: [_BREAKER, *(_KEY + name for name in self.keys.names)], self._follow
            )

    async def close(self) -> None:
        """Close all connections."""
        if self._cooldowns is not None:
            self._cooldowns.stop()
        await self.api.close()

    def _follow(self, name: str, seconds: float) -> None:
        if name == _BREAKER:
            what = "left alone" if seconds else "used again"
            _log.info(f"provider {what}, as another replica does", provider=self.name, seconds=seconds)
            self.breaker.follow(seconds, self._clock.monotonic())
        else:
            self.keys.follow(name.removeprefix(_KEY), seconds)

    def _tell_breaker(self, is_open: bool) -> None:  # noqa: FBT001 - as the breaker calls it
        kind = "breaker.opened" if is_open else "breaker.closed"
        events.publish(kind, bridge="mercury", provider=self.name)
        if self._cooldowns is None:
            return
        if is_open:
            self._cooldowns.begin(_BREAKER, self._breaker_seconds)
        else:
            self._cooldowns.end(_BREAKER)

    def _tell_probe(self) -> None:
        """Let the others wait for what this replica finds out."""
        if self._cooldowns is not None:
            self._cooldowns.begin(_BREAKER, self._breaker_seconds)

    def _tell_aside(self, key_name: str, seconds: float) -> None:
        if self._cooldowns is not None:
            self._cooldowns.begin(_KEY + key_name, seconds)

    # --- its state -----------------------------------------------------------------------------------------

    async def check(self, seconds: float) -> None:
        """Ask for the list of models, which costs nothing, to learn whether there is anybody."""
        try:
            await self.api.fetch_models(self.keys.pick(), seconds)
        except MercuryError as error:
            is_there = error.status is not None and not error.is_outage and error.code not in _UNUSABLE
            self.problem = "" if is_there else str(error)
        else:
            self.problem = ""


def make_provider(
    name: str, entry: ProviderEntry, settings: MercurySettings, clock: Clock, redis: Redis | None = None
) -> Provider:
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
    return Provider(settings.replace(own), clock, name, entry, redis)
