"""Service: everything that the mercury bridge holds open while it serves.

Cheap to import, because a server's first answer waits for it; opening loads the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from bridgehead.mcp import Context
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime import logs

from ..errors import MercuryError
from ..settings import MercurySettings
from ..tools.arguments import CallArguments
from .call import Call, CallFactory
from .routes import MERCURY, Routes, read_routes

if TYPE_CHECKING:
    from pathlib import Path

    from bridgehead.runtime.stores.ledger import SharedLedger
    from bridgehead.runtime.stores.redis import Redis
    from bridgehead.runtime.timing import Clock

    from ..database.usage import UsageDatabase
    from .budget import Budget
    from .completer import Completer
    from .provider import Provider
    from .usage_store import UsageStore

_JITTER = 0.2
_CHECK_SECONDS = 5.0
_log = logs.logger("mercury")


class Service:
    """What is open while the bridge serves. Making it asks nothing of the API yet."""

    def __init__(self, settings: MercurySettings, clock: Clock | None = None) -> None:
        from bridgehead.runtime.stores import open_redis
        from bridgehead.runtime.stores.windows import SharedWindows
        from bridgehead.runtime.timing import SystemClock

        from .audit import Audit
        from .cache import Cache
        from .limits import Limits
        from .runs import Runs
        from .usage import Usage

        self.settings = settings
        self.clock = clock = clock or SystemClock()
        self.routes = read_routes(settings.routes_file)
        self.calls = CallFactory(settings, self.routes)
        self.redis = redis = open_redis(settings)
        self.providers = _make_providers(settings, self.routes, clock, redis)
        self.mercury = self.providers[MERCURY]
        self.keys, self.catalogue = self.mercury.keys, self.mercury.catalogue
        self.cache = Cache(settings, clock)
        self.runs = Runs(clock)
        windows = None if redis is None else SharedWindows(redis, settings.rate_limit_window / 1000)
        self.limits = Limits(settings, clock, windows)
        self.usage_store = _make_usage_store(settings, clock)
        self.usage_database = self._open_usage_database()
        self.usage = Usage(self.usage_store, self.catalogue.price, self.usage_database)
        self.shared_ledger, self.budget = self._make_budget()
        self.audit = Audit(with_content=settings.log_content)
        self.completer = self._make_completer()

    def _make_budget(self) -> tuple[SharedLedger | None, Budget]:
        """Make the budget, and what replicas share of it where there is one to share."""
        from .budget import Budget, BudgetLimits

        limits = BudgetLimits.from_settings(self.settings)
        has_budget = limits != BudgetLimits()
        ledger = self._make_ledger(self.redis) if self.redis is not None and has_budget else None
        return ledger, Budget(self.usage_store, self.clock, limits, ledger)

    def _make_ledger(self, redis: Redis) -> SharedLedger:
        """Make the ledger of all replicas; a database keeps it from forgetting what Redis forgets."""
        from bridgehead.runtime.stores.ledger import SharedLedger

        if self.settings.database_url is None:
            return SharedLedger(redis)
        from bridgehead.runtime.stores.allotted_ledger import AllottedLedger

        from ..database.allotments import AllotmentDatabase

        return AllottedLedger(redis, AllotmentDatabase(self.settings.database_url))

    def _make_completer(self) -> Completer:
        import random

        from bridgehead.runtime.stores.flights import Flights
        from bridgehead.runtime.timing import Backoff

        from .admission import Admission
        from .completer import Completer
        from .retries import Retries

        settings, redis = self.settings, self.redis
        backoff = Backoff(settings.retry_delay / 1000, settings.max_retry_delay / 1000, jitter=_JITTER)
        return Completer(
            self.clock,
            cache=self.cache,
            admission=Admission(self.limits, self.budget, redis),
            usage=self.usage,
            retries=Retries(settings.max_retries, backoff, random.random),
            routes=self.routes,
            providers=self.providers,
            audit=self.audit,
            default_model=settings.model,
            flights=None if redis is None else Flights(redis, settings.cache_ttl),
        )

    @property
    def providers_down(self) -> list[str]:
        """The names of the providers that keep failing and are left alone for a while."""
        now = self.clock.monotonic()
        return [name for name, provider in self.providers.items() if provider.breaker.is_waiting(now)]

    async def check(self) -> None:
        """Learn how the providers and the budgets are, without a call."""
        keyed = [provider for provider in self.providers.values() if provider.keys.count]
        await asyncio.gather(*(provider.check(_CHECK_SECONDS) for provider in keyed), self.budget.check())

    def _open_usage_database(self) -> UsageDatabase | None:
        if self.settings.database_url is None:
            return None
        from ..database.usage import UsageDatabase

        return UsageDatabase(
            self.settings.database_url,
            partial(_open_state, self.settings),
            self.clock,
            keep_days=self.settings.usage_days,
        )

    async def close(self) -> None:
        """Close all connections."""
        for provider in self.providers.values():
            await provider.close()

    async def list_able_models(self, path: str) -> tuple[str, ...]:
        """Return the models that this server allows and that can be used with an endpoint, where known."""
        allowed = self.settings.allowed_models
        return tuple(name for name in await self.catalogue.list_able(path) if not allowed or name in allowed)

    def make_call(
        self, tool: str, path: str, args: CallArguments, context: Context[Any], *, stream: bool = False
    ) -> Call:
        """Make a call from its arguments; raises `MercuryError`, which the audit has a line for."""
        try:
            return self.calls.make(tool, path, args, context, stream=stream)
        except MercuryError as error:
            self.audit.begin(context, tool).end(error.code, 0.0)
            raise


def _make_providers(
    settings: MercurySettings, routes: Routes, clock: Clock, redis: Redis | None
) -> dict[str, Provider]:
    """Make Mercury, which the settings describe, and those that the routes file names."""
    from .provider import Provider, make_provider

    others = {
        name: make_provider(name, entry, settings, clock, redis) for name, entry in routes.providers.items()
    }
    return {MERCURY: Provider(settings, clock, redis=redis), **others}


def _make_usage_store(settings: MercurySettings, clock: Clock) -> UsageStore:
    from .ledger_import import import_ledger
    from .usage_store import UsageStore

    return UsageStore(
        partial(_open_state, settings),
        clock,
        keep_days=settings.usage_days,
        on_open=import_ledger,
    )


def _open_state(settings: MercurySettings) -> Path:
    from bridgehead.runtime import directories

    return directories.open_state(settings, "mercury")


@asynccontextmanager
async def open_service(settings: MercurySettings, clock: Clock | None = None) -> AsyncIterator[Service]:
    """Open everything, connect to the API in the background, and close it all in the end."""
    service = Service(settings, clock)
    if service.redis is not None:
        await service.redis.start()
    if service.shared_ledger is not None:
        await service.shared_ledger.start()
    for provider in service.providers.values():
        provider.start()
    _log.info("mercury bridge open", **settings.changes())
    warming = asyncio.create_task(_warm(service))
    try:
        yield service
    finally:
        warming.cancel()
        service.audit.close()
        await service.usage_store.close()
        if service.shared_ledger is not None:
            await service.shared_ledger.stop()
        if service.redis is not None:
            await service.redis.close()
        if service.usage_database is not None:
            await service.usage_database.close()
        await service.close()


async def _warm(service: Service) -> None:
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
