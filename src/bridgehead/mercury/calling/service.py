"""Service: the parts of a running mercury bridge.

Cheap to import, because a server's first answer waits for it; opening imports the rest.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from bridgehead.mcp import Turns
from bridgehead.runtime import directories, logs
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.stores import open_redis
from bridgehead.runtime.stores.rate_windows import SharedWindows
from bridgehead.runtime.timing import Backoff, Clock, SystemClock

from ..completion import Tokens
from ..errors import MercuryError
from ..settings import MercurySettings
from .audit import Audit
from .budget import Budget, BudgetLimits, BudgetStore
from .cache import Cache
from .call import CallFactory
from .completer import Completer
from .provider import Provider, make_provider
from .rate_limits import RateLimits
from .reservations import Reservations
from .retries import Retries
from .routes import MERCURY, read_routes
from .runs import Runs
from .sqlite_budget import SqliteBudget
from .sqlite_usage import SqliteUsage
from .usage import SteadyClock, Usage, UsageBackend

USAGE_DAYS = 400
"""How long usage by day, model and client is kept: long enough to compare a month with the same month a year
ago."""
_MAX_RETRY_SECONDS = 10.0
"""The longest wait between retries, as in the contract; a longer MERCURY_RETRY_DELAY is kept."""
_JITTER = 0.2
_CHECK_SECONDS = 5.0
_log = logs.logger("mercury")

_BATCH_PROMPTS_AT_ONCE = 64
"""Prompts of one caller that are being answered, over all of its batches."""


class Service:
    """The parts of a running bridge. Creating it sends nothing yet."""

    def __init__(self, settings: MercurySettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock = clock or SystemClock()
        self.routes = read_routes(settings.routes_file)
        self.make_call = CallFactory(
            settings,
            self.routes,
            lambda context, tool, error: self.audit.begin(context, tool).end(error.code, 0.0),
        ).make
        self.redis = redis = open_redis(settings)
        self.mercury = Provider(settings, clock)
        self.providers = {MERCURY: self.mercury} | {
            name: make_provider(name, entry, settings, clock) for name, entry in self.routes.providers.items()
        }
        for name, provider in (
            ("MERCURY_EMBEDDING_MODEL", settings.embedding_target[0]),
            ("MERCURY_FINE_TUNING", settings.fine_tuning or MERCURY),
        ):
            if provider not in self.providers:
                known = ", ".join(self.providers)
                raise SettingError(name, provider, f"a provider of the routes file (there are {known})")
        self.keys, self.catalogue = self.mercury.keys, self.mercury.catalogue
        self.cache = Cache(settings, clock)
        self.runs = Runs(clock)
        # Answers that arrive together are handled in one turn of the loop, so a caller with eight batches of
        # 32 at once made others wait 0.5 s. All callers together have no limit: some wait for a rate limit.
        self.batch_turns = Turns(1_000_000, per_caller=_BATCH_PROMPTS_AT_ONCE)
        # Without Redis, each process counts for itself.
        windows = None if redis is None else SharedWindows(redis)
        self.rate_limits = RateLimits(settings, clock, windows)
        self.usage_store: UsageBackend
        self.books: BudgetStore
        open_state = partial(directories.open_state, settings, settings.books)
        if settings.books_url is None:
            sqlite = SqliteUsage(open_state, clock, keep_days=USAGE_DAYS)
            self.usage_store, self.books = sqlite, SqliteBudget(sqlite)
        else:
            from .postgres_budget import PostgresBudget  # lazy: PostgreSQL, 14 ms
            from .postgres_usage import PostgresUsage  # lazy: PostgreSQL, 14 ms

            url = settings.books_url
            self.usage_store = PostgresUsage(url, open_state, clock, keep_days=USAGE_DAYS)
            self.books = PostgresBudget(url)

        def price(used: Tokens, model: str) -> float | None:
            prices = self.catalogue.find_prices(model)
            return None if prices is None or not prices.is_exact else prices.cost(used)

        days = SteadyClock(clock)
        self.usage = Usage(self.usage_store, days, price)
        self.budget = Budget(self.books, days, BudgetLimits.from_settings(settings))
        self.audit = Audit(with_content=settings.log_content)
        delay = settings.retry_delay / 1000
        backoff = Backoff(delay, max(delay, _MAX_RETRY_SECONDS), jitter=_JITTER)
        self.completer = Completer(
            clock,
            cache=self.cache,
            reservations=Reservations(clock, self.rate_limits, self.budget, self.usage),
            usage=self.usage,
            retries=Retries(settings.max_retries, backoff, random.random),
            routes=self.routes,
            providers=self.providers,
            audit=self.audit,
        )

    @property
    def providers_down(self) -> list[str]:
        """The names of the providers whose circuit breaker is open."""
        now = self.clock.monotonic()
        return [name for name, provider in self.providers.items() if provider.breaker.is_waiting(now)]

    async def check(self) -> None:
        """Check the providers and the budget's books, without a paid call."""
        keyed = [provider for provider in self.providers.values() if provider.keys.count]
        await asyncio.gather(*(provider.check(_CHECK_SECONDS) for provider in keyed), self.budget.check())

    async def close(self) -> None:
        """Write what is pending, and close everything; the budget first, because it books money."""
        self.audit.close()
        await self.books.close()
        await self.usage_store.close()
        if self.redis is not None:
            await self.redis.close()
        for provider in self.providers.values():
            await provider.close()


@asynccontextmanager
async def open_service(settings: MercurySettings, clock: Clock | None = None) -> AsyncIterator[Service]:
    """Open everything, connect to the API in the background, and close it all in the end."""
    service = Service(settings, clock)
    if service.redis is not None:
        await service.redis.start()
    _log.info("mercury bridge open", **settings.changes())

    async def warm() -> None:
        """Connect, and fetch models and prices, before the first call needs them."""
        if not service.keys.count:
            if any(provider.keys.count for provider in service.providers.values()):
                return
            _log.warn("no API key", next_step="set MERCURY_API_KEY or MERCURY_API_KEY_FILE")
            return
        try:
            await service.catalogue.refresh()
        except MercuryError as error:
            _log.warn("API not reached yet", code=error.code, reason=str(error))

    warming = asyncio.create_task(warm())
    try:
        yield service
    finally:
        warming.cancel()
        await service.close()
