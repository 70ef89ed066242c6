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

    from bridgehead.runtime.stores.redis import Redis
    from bridgehead.runtime.timing import Clock

    from ..database.usage import UsageDatabase
    from .budget import BudgetStore
    from .provider import Provider

_JITTER = 0.2
_CHECK_SECONDS = 5.0
_log = logs.logger("mercury")


class Service:
    """What is open while the bridge serves. Making it asks nothing of the API yet."""

    def __init__(self, settings: MercurySettings, clock: Clock | None = None) -> None:
        import random

        from bridgehead.runtime.stores import open_redis
        from bridgehead.runtime.timing import Backoff, SystemClock

        from .audit import Audit
        from .budget import Budget, BudgetLimits
        from .cache import Cache
        from .completer import Completer
        from .rate_limits import RateLimits
        from .reservations import Reservations
        from .retries import Retries
        from .runs import Runs
        from .usage import Usage
        from .usage_store import UsageStore

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
        windows = single_flight = None
        if redis is not None:
            from bridgehead.runtime.stores.rate_windows import SharedWindows
            from bridgehead.runtime.stores.single_flight import SingleFlight

            windows, single_flight = SharedWindows(redis), SingleFlight(redis, settings.cache_ttl)
        self.rate_limits = RateLimits(settings, clock, windows)
        self.usage_store = UsageStore(partial(_open_state, settings), clock, keep_days=settings.usage_days)
        self.usage_database = self._open_usage_database()
        self.usage = Usage(self.usage_database or self.usage_store, clock, self.catalogue.price)
        self.budget_store = self._open_budget_store()
        self.budget = Budget(self.budget_store, clock, BudgetLimits.from_settings(settings))
        self.audit = Audit(with_content=settings.log_content)
        backoff = Backoff(settings.retry_delay / 1000, settings.max_retry_delay / 1000, jitter=_JITTER)
        self.completer = Completer(
            clock,
            cache=self.cache,
            reservations=Reservations(clock, self.rate_limits, self.budget, self.usage),
            usage=self.usage,
            retries=Retries(settings.max_retries, backoff, random.random),
            routes=self.routes,
            providers=self.providers,
            audit=self.audit,
            single_flight=single_flight,
        )

    def _open_budget_store(self) -> BudgetStore:
        """Return the books: PostgreSQL's if it is set, otherwise those of this machine's SQLite."""
        if self.settings.database_url is not None:
            from .postgres_budget import PostgresBudget

            return PostgresBudget(self.settings.database_url)
        from .sqlite_budget import SqliteBudget

        return SqliteBudget(self.usage_store)

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


def _open_state(settings: MercurySettings) -> Path:
    from bridgehead.runtime import directories

    return directories.open_state(settings, "mercury")


@asynccontextmanager
async def open_service(settings: MercurySettings, clock: Clock | None = None) -> AsyncIterator[Service]:
    """Open everything, connect to the API in the background, and close it all in the end."""
    service = Service(settings, clock)
    if service.redis is not None:
        await service.redis.start()
    for provider in service.providers.values():
        provider.start()
    _log.info("mercury bridge open", **settings.changes())
    warming = asyncio.create_task(_warm(service))
    try:
        yield service
    finally:
        warming.cancel()
        service.audit.close()
        await service.budget_store.close()
        await service.usage_store.close()
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
