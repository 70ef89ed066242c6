"""Service: everything that the mercury bridge holds open while it serves.

Cheap to import, because a server's first answer waits for it; opening loads the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridgehead.mcp import Context
from bridgehead.mcp.later import asyncio
from bridgehead.runtime import logs

from ..errors import MercuryError
from ..settings import MercurySettings
from ..tools.arguments import CompletionArguments
from .call import Call, CallFactory

if TYPE_CHECKING:
    from bridgehead.runtime.clock import Clock

    from ..accounts import Accounts
    from ..api.catalogue import Catalogue
    from ..api.client import ApiClient
    from .audit import Audit
    from .cache import Cache
    from .completer import Completer
    from .keys import Keys
    from .limits import Limits
    from .retries import Breaker

_JITTER = 0.2
_log = logs.logger("mercury")


class Service(Struct, kw_only=True):
    """What is open while the bridge serves."""

    settings: MercurySettings
    clock: Clock
    calls: CallFactory
    keys: Keys
    api: ApiClient
    catalogue: Catalogue
    cache: Cache
    limits: Limits
    accounts: Accounts
    audit: Audit
    breaker: Breaker
    completer: Completer

    def make_call(
        self, tool: str, path: str, args: CompletionArguments, context: Context[Any], *, stream: bool = False
    ) -> Call:
        """Make a call from its arguments; raises `MercuryError`, which the audit has a line for."""
        try:
            return self.calls.make(tool, path, args, context, stream=stream)
        except MercuryError as error:
            self.audit.begin(context, tool).end(error.code, 0.0)
            raise


def make_service(settings: MercurySettings, clock: Clock | None = None) -> Service:
    """Put the parts together. Nothing is asked of the API yet."""
    import random

    from bridgehead.runtime import places
    from bridgehead.runtime.backoff import Backoff
    from bridgehead.runtime.clock import SystemClock

    from ..accounts import Accounts
    from ..api.catalogue import Catalogue
    from ..api.client import ApiClient
    from ..ledger import Ledger
    from .audit import Audit
    from .cache import Cache
    from .completer import Completer
    from .keys import Keys
    from .limits import Limits
    from .retries import Breaker, Retries

    clock = clock or SystemClock()
    api, keys = ApiClient(settings, clock), Keys(settings, clock)
    catalogue = Catalogue(api, keys, clock, settings)
    cache, limits = Cache(settings, clock), Limits(settings, clock)
    accounts = Accounts(lambda: Ledger(places.state(settings, "mercury"), clock), clock, settings.budget_usd)
    audit = Audit(with_content=settings.log_content)
    breaker = Breaker(settings.breaker_failures, settings.breaker_wait / 1000)
    backoff = Backoff(settings.retry_delay / 1000, settings.max_retry_delay / 1000, jitter=_JITTER)
    completer = Completer(
        clock,
        cache=cache,
        limits=limits,
        accounts=accounts,
        keys=keys,
        retries=Retries(settings.max_retries, backoff, random.random),
        breaker=breaker,
        api=api,
        catalogue=catalogue,
        audit=audit,
        default_model=settings.model,
    )
    return Service(
        settings=settings,
        clock=clock,
        calls=CallFactory(settings),
        keys=keys,
        api=api,
        catalogue=catalogue,
        cache=cache,
        limits=limits,
        accounts=accounts,
        audit=audit,
        breaker=breaker,
        completer=completer,
    )


@asynccontextmanager
async def open_service(settings: MercurySettings, clock: Clock | None = None) -> AsyncIterator[Service]:
    """Open everything, connect to the API in the background, and close it all in the end."""
    service = make_service(settings, clock)
    _log.info("mercury bridge open", **dict(settings.summary()))
    warming = asyncio.create_task(_warm(service))
    try:
        yield service
    finally:
        warming.cancel()
        service.audit.close()
        await service.accounts.close()
        await service.api.close()


async def _warm(service: Service) -> None:
    """Connect to the API, and learn its models and prices, before the first call needs them."""
    if not service.keys.count:
        _log.warn("no API key", next_step="set MERCURY_API_KEY or MERCURY_API_KEY_FILE")
        return
    try:
        await service.catalogue.refresh()
    except MercuryError as error:
        _log.warn("API not reached yet", code=error.code, reason=str(error))
