"""Opening: puts the parts of the service together, and warms the way to the API."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from bridgehead.runtime import logs, places
from bridgehead.runtime.backoff import Backoff
from bridgehead.runtime.clock import SystemClock

from ..accounts import Accounts
from ..api.catalogue import Catalogue
from ..api.client import Api
from ..api.completing import Completer
from ..api.wire import MODELS
from ..errors import MercuryError
from ..ledger import Ledger
from ..settings import MercurySettings
from .audit import Audit
from .breaker import Breaker
from .cache import Cache
from .keys import Keys
from .limits import Limits
from .retries import Retries
from .sending import Sender
from .service import Service

if TYPE_CHECKING:
    from bridgehead.runtime.clock import Clock

_JITTER = 0.2
_log = logs.logger("mercury")


def opened(settings: MercurySettings, clock: Clock | None = None) -> Service:
    """Make the service. Nothing is asked of the API yet."""
    clock = clock or SystemClock()
    keys, api = Keys(settings, clock), Api(settings, clock)

    async def fetch_models() -> bytes:
        seconds = settings.request_timeout / 1000
        return await api.get(MODELS, keys.pick(), seconds)

    catalogue = Catalogue(fetch_models, clock, keep=settings.cache_enabled)
    limits = Limits(settings, clock)
    accounts = Accounts(lambda: Ledger(places.state(settings, "mercury"), clock), clock, settings.budget_usd)
    breaker = Breaker(settings.breaker_failures, settings.breaker_wait / 1000)
    backoff = Backoff(settings.retry_delay / 1000, settings.max_retry_delay / 1000, jitter=_JITTER)
    retries = Retries(settings.max_retries, backoff, clock, random.random)
    return Service(
        settings,
        clock,
        keys=keys,
        api=api,
        catalogue=catalogue,
        cache=Cache(settings, clock),
        limits=limits,
        accounts=accounts,
        audit=Audit(with_content=settings.log_content),
        breaker=breaker,
        sender=Sender(
            clock,
            keys=keys,
            catalogue=catalogue,
            limits=limits,
            accounts=accounts,
            breaker=breaker,
            retries=retries,
        ),
        completer=Completer(api, catalogue, clock),
    )


async def warm(service: Service) -> None:
    """Connect to the API, and learn its models and prices, before the first call needs them."""
    if service.settings.http2:
        _log.warn("MERCURY_HTTP2 no longer has an effect: HTTP/2 was removed, the bridge uses HTTP/1.1")
    if not service.keys.count:
        _log.warn("no API key", next_step="set MERCURY_API_KEY or MERCURY_API_KEY_FILE")
        return
    try:
        await service.catalogue.refresh()
    except MercuryError as error:
        _log.warn("API not reached yet", code=error.code, reason=str(error))
