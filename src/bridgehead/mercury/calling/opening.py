"""Opening: puts the parts of the service together, and warms the way to the API."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from bridgehead.runtime import logs, places
from bridgehead.runtime.backoff import Backoff
from bridgehead.runtime.clock import SystemClock

from ..api.catalogue import Catalogue
from ..api.client import Api
from ..api.completing import Completer
from ..api.wire import MODELS
from ..errors import MercuryError
from ..settings import MercurySettings
from .audit import Audit
from .breaker import Breaker
from .budget import Amounts, Budget, BudgetLimits
from .cache import Cache
from .keys import Keys
from .ledger_import import import_ledger
from .limits import Limits
from .retries import Retries
from .sending import Sender
from .service import Service
from .usage import Usage
from .usage_store import UsageStore

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
    usage_store = UsageStore(
        lambda: places.state(settings, "mercury"),
        clock,
        keep_days=settings.usage_days,
        on_open=import_ledger,
    )
    budget = Budget(usage_store, clock, _budget_limits(settings))
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
        usage=Usage(usage_store),
        budget=budget,
        usage_store=usage_store,
        audit=Audit(with_content=settings.log_content),
        breaker=breaker,
        sender=Sender(
            clock,
            keys=keys,
            catalogue=catalogue,
            limits=limits,
            budget=budget,
            breaker=breaker,
            retries=retries,
        ),
        completer=Completer(api, catalogue, clock),
    )


def _budget_limits(settings: MercurySettings) -> BudgetLimits:
    return BudgetLimits(
        Amounts(settings.budget_usd, settings.month_budget_usd),
        Amounts(settings.client_budget_usd, settings.client_month_budget_usd),
        {name: Amounts(day, month) for name, day, month in settings.client_budgets},
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
