"""Service: everything that the mercury bridge holds open, and what its tools ask of it.

Knows no protocol beyond a call's context: tools turn arguments into a `Call`, and a `Completed` into an
answer. Cheap to import, because a server's first answer waits for it; `open_service` loads the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from bridgehead.mcp import Context
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError

from ..errors import InvalidCall, MercuryError
from ..settings import MercurySettings
from ..tally import Tally, tally_of
from ..tools.arguments import Completing
from .audit import Audit, brief
from .call import Call, Calls, client_of
from .recall import Recall

if TYPE_CHECKING:
    from bridgehead.runtime.clock import Clock

    from ..accounts import Accounts
    from ..api.catalogue import Catalogue
    from ..api.client import Api
    from ..api.completing import Completer
    from ..completion import Completed
    from .breaker import Breaker
    from .cache import Cache
    from .kept import Kept
    from .keys import Keys
    from .limits import Limits
    from .sending import Send, Sender

UNKNOWN_MODEL = "(unknown)"
T = TypeVar("T")
_log = logs.logger("mercury")


class Service:
    """What is open while the bridge serves."""

    def __init__(
        self,
        settings: MercurySettings,
        clock: Clock,
        *,
        keys: Keys,
        api: Api,
        catalogue: Catalogue,
        cache: Cache,
        limits: Limits,
        accounts: Accounts,
        audit: Audit,
        breaker: Breaker,
        sender: Sender,
        completer: Completer,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._calls = Calls(settings)
        self.recall = Recall()
        self.keys = keys
        self.api = api
        self.catalogue = catalogue
        self.cache = cache
        self.limits = limits
        self.accounts = accounts
        self.audit = audit
        self.breaker = breaker
        self._sender = sender
        self._completer = completer

    # --- what is asked -------------------------------------------------------------------------------------

    def call_of(self, tool: str, path: str, args: Completing, context: Context[Any]) -> Call:
        """Make a call from its arguments; raises `InvalidCall`, and notes it."""
        try:
            return self._calls.make(tool, path, args, context)
        except InvalidCall as refusal:
            brief(tool, client_of(context), refusal.code)
            raise

    async def audited(self, tool: str, context: Context[Any], work: Awaitable[T]) -> T:
        """Do something that asks nothing of a model, and note what came of it."""
        begun, outcome = self.clock.monotonic(), "ok"
        try:
            return await work
        except BridgeError as error:
            outcome = error.code.upper()
            raise
        finally:
            brief(tool, client_of(context), outcome, self.clock.monotonic() - begun)

    # --- answers that are kept -----------------------------------------------------------------------------

    def kept(self, call: Call, now: float) -> Kept | None:
        """Give a kept answer to a call, where it takes one and there is one. Does not wait."""
        if call.keep != "use" or not self.cache.is_enabled:
            return None
        kept = self._given_again(call, now)
        if kept is None:
            self.cache.misses += 1
        return kept

    def recalled(self, arguments: bytes, client: str, now: float) -> Kept | None:
        """Give the kept answer to a call that this client made before in the very same words."""
        call = self.recall.get((client, arguments))
        return None if call is None else self._given_again(call, now)

    def _given_again(self, call: Call, now: float) -> Kept | None:
        kept = self.cache.get(call.key, now)
        if kept is not None:
            self.accounts.count_hit(call.model)
            self.audit.note(call, "ok", 0.0, kept.completed)
        return kept

    def kept_completed(self, call: Call) -> Completed | None:
        """Give the same with its age."""
        now = self.clock.monotonic()
        kept = self.kept(call, now)
        return None if kept is None else kept.completed_at(now)

    # --- asking --------------------------------------------------------------------------------------------

    async def complete(self, call: Call, context: Context[Any]) -> Completed:
        """Give the answer to a call; raises `MercuryError`."""
        from ..tools.progress import Progress

        async with Progress(context, self.settings.heartbeat / 1000):
            return await self._answered(call, self._completer.complete)

    async def complete_quietly(self, call: Call) -> Completed:
        """Give the answer to a call that is one of many, and of which nobody is told alone."""
        return await self._answered(call, self._completer.complete)

    async def stream(self, call: Call, context: Context[Any]) -> Completed:
        """Give the answer to a call, telling the client of it as it comes."""
        from ..api.streaming import Streamer

        streamer = Streamer(self.settings, self.api, self.catalogue, self.clock, context)
        return await self._answered(call, streamer.stream)

    async def _answered(self, call: Call, send: Send) -> Completed:
        """Ask, and note what came of it."""
        from .. import failures

        begun = self.clock.monotonic()
        try:
            completed = await self._asked(call, send)
        except MercuryError as error:
            self._failed(call, error.code, begun)
            if error.code != failures.MODEL_NOT_FOUND:
                raise
            await self.catalogue.known()
            raise failures.unknown_model(call.model, self.catalogue.names) from error
        except asyncio.CancelledError:
            self._failed(call, "CANCELLED", begun)
            raise
        self.audit.note(call, "ok", self.clock.monotonic() - begun, completed)
        return completed

    async def _asked(self, call: Call, send: Send) -> Completed:
        self.keys.pick()  # a call without a key is refused before anything else
        if call.expected is not None:
            from ..api import formats

            formats.check_schema(call.expected)
        if call.keep == "bypass" or not self.cache.is_enabled:
            return await self._sent(call, send)
        if call.keep == "use" and send == self._completer.complete:
            completed, is_joined = await self.cache.share(call.key, lambda: self._sent(call, send))
            if is_joined:
                self.accounts.count_hit(call.model)
        else:
            completed = await self._sent(call, send)
        self.cache.put(call.key, completed)
        return completed

    async def _sent(self, call: Call, send: Send) -> Completed:
        completed = await self._sender.send(call, send)
        self.accounts.count(call.model, tally_of(completed.metadata))
        if call.expected is not None and completed.tool_calls is None:
            from ..api import formats

            formats.check(call.expected, completed.content)
        return completed

    # --- noting --------------------------------------------------------------------------------------------

    def _failed(self, call: Call, code: str, begun: float) -> None:
        self.accounts.count(self._counted_as(call.model), Tally(calls=1, errors=1))
        self.audit.note(call, code, self.clock.monotonic() - begun, None)

    def _counted_as(self, model: str) -> str:
        """Give the name that a failure is counted under: what clients make up is not counted one by one."""
        is_known = model == self.settings.model or self.catalogue.find(model) is not None
        return model if is_known else UNKNOWN_MODEL


@asynccontextmanager
async def open_service(settings: MercurySettings, clock: Clock | None = None) -> AsyncIterator[Service]:
    """Open everything, warm the connection in the background, and close it all in the end."""
    from .opening import opened, warm

    service = opened(settings, clock)
    _log.info("mercury bridge open", **dict(settings.summary()))
    warming = asyncio.create_task(warm(service))
    try:
        yield service
    finally:
        warming.cancel()
        service.audit.close()
        await service.accounts.close()
        await service.api.close()
