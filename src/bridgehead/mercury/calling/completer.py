"""Completer: the way of one call to the model, through everything that may answer, stop, delay or repeat it.

    cache → limit on calls → providers, each: tries, each: budget and limits for the worst case → breaker
    → the API → settle → cache

Replicas take what a call needs of the second to the fourth in one round trip.

A try that fails because of its key is repeated at once with another key, one that fails in passing after a
delay, or at once with the next provider where a route names one. What was reserved for a try is settled when
it is known what it used. Where nobody can know, because an answer was lost on its way, the worst case stays.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bridgehead.mcp import Context
from bridgehead.runtime import logs
from bridgehead.runtime.timing import Clock

from ..api import response_format
from ..api.client import Report, TimeLimit
from ..api.refusals import list_models
from ..completion import Completion, Metadata
from ..errors import MercuryError, format_seconds
from .admission import Admission, Hold, Passage
from .audit import Audit
from .cache import Cache, CachedCompletion, share_with_replicas
from .call import Call
from .keys import ASIDE_SECONDS
from .provider import Provider
from .retries import Retries
from .routes import Routes, Target
from .usage import Usage, UsageCounts

if TYPE_CHECKING:
    from bridgehead.runtime.stores.flights import Flights

UNKNOWN_MODEL = "(unknown)"
"""What failures of models that nobody knows are counted under: clients may make up any number of names."""
_FALL_BACK = frozenset(
    {
        *("SERVICE_DOWN", "SERVICE_ERROR", "LOCAL_RATE_LIMIT", "NOT_FOUND", "MODEL_NOT_FOUND"),
        *("MISSING_API_KEY", "INVALID_API_KEY", "BILLING_REQUIRED", "PRICE_UNKNOWN"),
    }
)
"""What one provider cannot do and another may."""
_log = logs.logger("mercury.completer")


class Completer:
    """Answers calls, from the cache or from the API."""

    def __init__(
        self,
        clock: Clock,
        *,
        cache: Cache,
        admission: Admission,
        usage: Usage,
        retries: Retries,
        routes: Routes,
        providers: dict[str, Provider],
        audit: Audit,
        default_model: str,
        flights: Flights | None = None,
    ) -> None:
        self._clock = clock
        self._cache = cache
        self._admission = admission
        self._usage = usage
        self._retries = retries
        self._routes = routes
        self._providers = providers
        self._audit = audit
        self._default_model = default_model
        self._flights = flights
        """Work that other replicas do as well; None where there are none."""

    # --- from the cache ------------------------------------------------------------------------------------

    def lookup(self, call: Call, context: Context[Any], now: float) -> CachedCompletion | None:
        """Return the cached answer to a call, if there is one and it will do. Does not wait."""
        if call.cache != "use" or not self._cache.is_enabled:
            return None
        cached = self._cache.lookup(call.cache_key, now)
        if cached is None:
            self._cache.misses += 1
            return None
        self._note_hit(call, context, cached.completion)
        return cached

    def recognize(self, context: Context[Any], client: str, now: float) -> CachedCompletion | None:
        """Return the cached answer to a call that this client made before with the same bytes."""
        call = self._cache.recognize(client, bytes(context.arguments))
        cached = None if call is None else self._cache.lookup(call.cache_key, now)
        if call is not None and cached is not None:
            self._note_hit(call, context, cached.completion)
        return cached

    def _note_hit(self, call: Call, context: Context[Any], completion: Completion) -> None:
        self._usage.count_hit(call.model, call.client)
        context.annotate(describe_call(call, completion))
        self._audit.begin(context, call.tool, call).end("ok", 0.0, completion)

    # --- from the API --------------------------------------------------------------------------------------

    async def complete(self, call: Call, context: Context[Any], report: Report | None = None) -> Completion:
        """Answer a call that the cache does not; raises `MercuryError`. A streamed call needs a `report`."""
        started = self._clock.monotonic()
        entry = self._audit.begin(context, call.tool, call)
        try:
            targets = self._route(call)
            response_format.check_schema(call.response_format)
            completion = await (
                self._share(call, targets) if self._can_share(call) else self._send(call, targets, report)
            )
            response_format.check_content(call.response_format, completion)
        except MercuryError as error:
            self._count_failure(call)
            context.annotate({**describe_call(call), "error.type": error.code})
            entry.end(error.code, self._clock.monotonic() - started)
            if error.code in ("MODEL_NOT_FOUND", "MODEL_NOT_SUITABLE"):
                await self._name_able_models(call, error)
            raise
        except asyncio.CancelledError:
            self._count_failure(call)
            entry.end("CANCELLED", self._clock.monotonic() - started)
            raise
        if call.cache != "bypass" and self._cache.is_enabled:
            self._cache.store(call.cache_key, completion)
        entry.end("ok", self._clock.monotonic() - started, completion)
        context.annotate(describe_call(call, completion))
        return completion

    def _can_share(self, call: Call) -> bool:
        """Whether equal calls under way may have the answer too; each stream is its client's own."""
        return call.cache == "use" and self._cache.is_enabled and not call.is_streamed

    async def _share(self, call: Call, targets: list[Target]) -> Completion:
        completion, is_joined = await self._cache.share(call.cache_key, lambda: self._fly(call, targets))
        if is_joined:  # who asked first pays, and nobody is told of a second bill
            self._usage.count_hit(call.model, call.client)
            return replace(completion, metadata=replace(completion.metadata, cost_usd=0.0))
        return completion

    async def _fly(self, call: Call, targets: list[Target]) -> Completion:
        """Send a call, unless another replica does that or has done it a while ago."""
        if self._flights is None:
            return await self._send(call, targets, None)
        passage = await self._begin(call)
        try:
            completion, is_joined = await share_with_replicas(
                self._flights, call.cache_key, lambda: self._send(call, targets, None, passage), passage.needs
            )
        except BaseException:  # it may have ended before anything was sent
            passage.close()
            raise
        if is_joined:
            self._usage.count_hit(call.model, call.client)
        return completion

    def _route(self, call: Call) -> list[Target]:
        """Return where a call goes; without a key for that it is refused before anything else."""
        if self._routes.routes:
            found = self._routes.find(call)
            targets = [Target(target.provider, target.model or call.model) for target in found]
            call.turn_to(targets[0])
        else:
            targets = [Target(call.provider, call.model)]
        self._providers[call.provider].keys.pick()
        return targets

    async def _name_able_models(self, call: Call, error: MercuryError) -> None:
        able = await self._providers[call.provider].catalogue.list_able(call.path)
        if able:
            error.advise(list_models((*self._routes.names, *able)))

    async def _send(
        self, call: Call, targets: list[Target], report: Report | None, passage: Passage | None = None
    ) -> Completion:
        """Let a call in, and ask its providers, one after the other, until one answers."""
        passage = passage or await self._begin(call)
        try:
            await passage.admit_call(call)
            for target, following in pairwise(targets):
                try:
                    return await self._send_to(call, passage, report, retries=False)
                except MercuryError as error:
                    if not _can_fall_back(error):
                        raise
                    _log.warn("falling back", provider=target.provider, code=error.code, tool=call.tool)
                await self._turn_to(following, call, passage)
            return await self._send_to(call, passage, report, retries=True)
        finally:
            passage.close()

    async def _begin(self, call: Call) -> Passage:
        """Begin a call's way with the prices that it needs, so that Redis is asked once."""
        provider, now = self._providers[call.provider], self._clock.monotonic()
        if self._admission.has_to_wait_for_prices(provider):
            await provider.catalogue.load(call.seconds)
        return self._admission.begin(call, provider, now)

    async def _turn_to(self, target: Target, call: Call, passage: Passage) -> None:
        """Turn to another provider, whose prices may not be known yet."""
        call.turn_to(target)
        provider = self._providers[call.provider]
        if self._admission.has_to_wait_for_prices(provider):
            await provider.catalogue.load(max(0.0, passage.deadline - self._clock.monotonic()))

    async def _send_to(
        self, call: Call, passage: Passage, report: Report | None, *, retries: bool
    ) -> Completion:
        """Try until the call's provider answers, cannot answer, was asked often enough, or time is up."""
        provider = self._providers[call.provider]
        key, refused_keys, tries = provider.keys.pick(), set[str](), 0
        while True:
            try:
                return await self._try(call, provider, key, passage, report)
            except MercuryError as error:
                another = _replace_key(provider, key, error, refused_keys)
                if another is not None:
                    key = another
                    continue
                delay = self._retries.delay(error, tries, passage.deadline - self._clock.monotonic())
                if delay is None or not retries:
                    raise
                _log.warn(
                    "retrying", code=error.code, status=error.status, seconds=round(delay, 3), tool=call.tool
                )
            await asyncio.sleep(delay)
            key, refused_keys, tries = provider.keys.pick(), set(), tries + 1

    async def _try(
        self, call: Call, provider: Provider, key: str, passage: Passage, report: Report | None
    ) -> Completion:
        """Send a call once, with what it can use reserved before and settled after."""
        hold = await passage.reserve(call, provider)
        limit = self._limit_time(call, passage.deadline)
        try:
            self._check_breaker(provider, hold, limit.seconds)
            call.tries += 1
            if report is not None and call.is_streamed:
                completion = await provider.api.stream(call, key, limit, report)
            else:
                completion = await provider.api.complete(call, key, limit)
        except MercuryError as error:
            self._settle_failure(provider, hold, error)
            raise
        except BaseException:  # cancelled: nobody knows what the service did, so the worst case stays
            provider.breaker.record_nothing()
            raise
        provider.breaker.record_success()
        provider.problem = ""
        answer = completion.metadata
        answer.cost_usd = provider.catalogue.price(answer, call.model)
        if answer.cost_usd is None and answer.usage.total_tokens:
            # The first answer of a process may come before the prices.
            await provider.catalogue.wait_for_prices()
            answer.cost_usd = provider.catalogue.price(answer, call.model)
        self._settle_answer(call, provider, hold, answer)
        return completion

    def _settle_answer(self, call: Call, provider: Provider, hold: Hold, answer: Metadata) -> None:
        """Count what an answer used and cost."""
        if self._routes.routes:
            answer.provider = provider.name
        used = answer.usage
        if used.total_tokens:  # an answer that does not say what it used keeps what was reserved
            self._admission.settle(hold, used.prompt_tokens, used.completion_tokens, answer.cost_usd)
        self._usage.count_answer(call.model, call.client, answer)

    def _limit_time(self, call: Call, deadline: float) -> TimeLimit:
        """Return how long the next request may take, and which setting says so."""
        left = deadline - self._clock.monotonic()
        if call.is_streamed or left < call.request_seconds:
            return TimeLimit(left, "MERCURY_TOTAL_TIMEOUT")
        return TimeLimit(call.request_seconds, "REQUEST_TIMEOUT")

    def _check_breaker(self, provider: Provider, hold: Hold, seconds: float) -> None:
        """Let a request out, unless no time is left or the service is left alone for now."""
        if seconds <= 0:
            raise NotSent(
                "TIMEOUT",
                "The call's time was over before the Mercury API could be asked.",
                next_step="Raise MERCURY_TOTAL_TIMEOUT or give timeout_ms, or make fewer calls at once.",
            )
        delay = provider.breaker.delay(self._clock.monotonic())
        if delay:
            raise NotSent(
                "SERVICE_DOWN",
                "The Mercury API has failed again and again, so it is left alone for a while.",
                retry_after=delay,
                next_step=f"It is tried again in {format_seconds(delay)}; call again then.",
            )
        if hold.provider is None:
            provider.admit()

    def _settle_failure(self, provider: Provider, hold: Hold, error: MercuryError) -> None:
        if isinstance(error, NotSent):  # so nothing is known of the service
            if hold.provider is not None:
                hold.provider.give_back()
        elif error.is_outage:
            provider.breaker.record_failure(self._clock.monotonic())
        elif error.status is not None:
            provider.breaker.record_success()
        else:
            provider.breaker.record_nothing()
        if not error.may_be_billed:
            self._admission.settle(hold, 0, 0, 0.0)

    def _count_failure(self, call: Call) -> None:
        is_known = (
            call.model == self._default_model
            or self._providers[call.provider].catalogue.find(call.model) is not None
        )
        model = call.model if is_known else UNKNOWN_MODEL
        self._usage.count(model, call.client, UsageCounts(calls=1, errors=1))


class NotSent(MercuryError):
    """Nothing was sent, so there is nothing to retry and nothing that could be billed."""

    def __init__(self, code: str, message: str, *, next_step: str, retry_after: float | None = None) -> None:
        super().__init__(code, message, next_step=next_step, retry_after=retry_after, is_transient=False)
        self.may_be_billed = False


def _replace_key(provider: Provider, key: str, error: MercuryError, refused_keys: set[str]) -> str | None:
    """Return another key for a try that failed because of its own, if there is one."""
    if error.status not in ASIDE_SECONDS:
        return None
    refused_keys.add(key)
    provider.keys.put_aside(key, error.status, error.retry_after)
    return provider.keys.find_other(refused_keys)


def _can_fall_back(error: MercuryError) -> bool:
    """Tell whether another provider may be asked: nothing was answered, and nothing can have been billed."""
    if error.may_be_billed or error.code in ("TIMEOUT", "BUDGET_EXCEEDED"):
        return False
    return error.is_transient or error.is_outage or error.code in _FALL_BACK


def describe_call(call: Call, completion: Completion | None = None) -> dict[str, object]:
    """Describe a call in the words of OpenTelemetry's conventions for GenAI."""
    about: dict[str, object] = {"gen_ai.provider.name": call.provider, "gen_ai.request.model": call.model}
    if completion is None:
        return about
    told = completion.metadata
    about["gen_ai.response.model"] = told.model
    about["gen_ai.usage.input_tokens"] = told.usage.prompt_tokens
    about["gen_ai.usage.output_tokens"] = told.usage.completion_tokens
    if told.cost_usd is not None:
        about["bridgehead.cost_usd"] = told.cost_usd
    return about
