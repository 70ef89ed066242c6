"""Completer: the policy of one call to the model, from the cache to the settlement.

    cache → targets, each: attempts, each: reservation → breaker → send → settle → cache

An attempt that fails because of its key is repeated at once with another key; one with a transient failure
after a delay, or at once with the next target if a route names one. A refused default model, or an endpoint
that is not there, is replaced by one that can answer. Every attempt is a send with its own reservation
(`reservations.py`). A request that was written is sent again only after a status that allows it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from bridgehead.mcp import Context
from bridgehead.runtime import logs
from bridgehead.runtime.timing import Clock

from ..api import response_format
from ..api.client import ProgressCallback, TimeLimit
from ..api.evidence import NOTHING_PROVEN, NOTHING_WRITTEN, Sent
from ..api.refusals import list_models
from ..api.wire import CHAT, COMPLETIONS, DECISIONS, EDIT, EMBEDDINGS, FIM
from ..completion import Completion, Money
from ..errors import MercuryError, format_seconds
from .audit import Audit
from .cache import Cache, CachedCompletion
from .call import Call
from .keys import COOLDOWN_SECONDS
from .provider import Provider
from .reservations import Reservations
from .retries import Retries
from .routes import MERCURY, Routes, Target
from .settlement import End
from .usage import Usage, UsageCounts

_FALL_BACK = frozenset(
    {
        *("SERVICE_DOWN", "SERVICE_ERROR", "LOCAL_RATE_LIMIT", "NOT_FOUND", "MODEL_NOT_FOUND"),
        *("MISSING_API_KEY", "INVALID_API_KEY", "BILLING_REQUIRED", "PRICE_UNKNOWN"),
        *("MODEL_NOT_SUITABLE", "CONTEXT_LENGTH_EXCEEDED", "FORBIDDEN"),
    }
)
"""Failures of one provider that another may not have."""
_RENAMED = "max_tokens was sent as max_completion_tokens, because the model does not take it."
_log = logs.logger("mercury.completer")


class Completer:
    """Answers calls, from the cache or from the API."""

    def __init__(
        self,
        clock: Clock,
        *,
        cache: Cache,
        reservations: Reservations,
        usage: Usage,
        retries: Retries,
        routes: Routes,
        providers: dict[str, Provider],
        audit: Audit,
    ) -> None:
        self._clock = clock
        self._cache = cache
        self._reservations = reservations
        self._usage = usage
        self._retries = retries
        self._routes = routes
        self._providers = providers
        self._audit = audit

    # --- from the cache ------------------------------------------------------------------------------------

    def lookup(self, call: Call, context: Context[Any], now: float) -> CachedCompletion | None:
        """Return the cached answer to a call, if there is one and the call allows it. Does not wait."""
        if call.cache != "use" or not self._cache.is_enabled:
            return None
        cached = self._cache.lookup(call.cache_key, now)
        if cached is None:
            self._cache.misses += 1
            return None
        self._note_hit(call, context, cached.completion)
        return cached

    def _note_hit(self, call: Call, context: Context[Any], completion: Completion) -> None:
        self._usage.count_hit(call.model, call.client)
        context.annotate(describe_call(call, completion))
        self._audit.begin(context, call.tool, call).end("ok", 0.0, completion)

    # --- from the API --------------------------------------------------------------------------------------

    async def complete(
        self, call: Call, context: Context[Any], report: ProgressCallback | None = None
    ) -> Completion:
        """Answer a call that is not cached; raises `MercuryError`. A streamed call needs a `report`."""
        started = self._clock.monotonic()
        entry = self._audit.begin(context, call.tool, call)
        is_cached = self._cache.is_enabled and call.cache != "bypass"
        try:
            targets = await self._choose_targets(call)
            call.direct_to(targets[0])
            self._providers[call.provider].keys.pick()  # raises if the first target has no key
            if call.response_format is not None:
                response_format.check_schema(call.response_format)  # before the call costs anything
            # Equal calls under way share one answer. Streams do not: each is sent to its own client as it
            # grows.
            if is_cached and call.cache == "use" and not call.is_streamed:
                completion = await self._share(call, targets)
            else:
                completion = await self._ask(call, targets, report)
            call.cost_usd = completion.metadata.cost_usd
            if call.response_format is not None:
                response_format.check_content(call.response_format, completion)
        except MercuryError as error:
            self._count_failure(call)
            error.money = Money(call.cost_usd, call.uncertain_usd, call.left_usd)
            context.annotate({**describe_call(call), "error.type": error.code})
            entry.end(error.code, self._clock.monotonic() - started)
            if error.code in ("MODEL_NOT_FOUND", "MODEL_NOT_SUITABLE"):
                usable = await self._providers[call.provider].catalogue.list_usable(call.path)
                if usable:
                    error.advise(list_models((*self._routes.names, *usable)))
            raise
        except asyncio.CancelledError:
            self._count_failure(call)
            entry.end("CANCELLED", self._clock.monotonic() - started)
            raise
        if is_cached:
            self._cache.store(call.cache_key, completion)
        entry.end("ok", self._clock.monotonic() - started, completion)
        context.annotate(describe_call(call, completion))
        return completion

    async def _choose_targets(self, call: Call) -> list[Target]:
        """Return the targets of a call, in order: those of its route, or its model at Mercury."""
        if call.path == EMBEDDINGS:
            return [Target(call.provider, call.model)]
        if routed := self._routes.find(call):
            call.default_model = ""
            return [Target(target.provider, target.model or call.model) for target in routed]
        catalogue = self._providers[MERCURY].catalogue
        # A chat does not wait for the list of models: nearly every model can chat.
        is_unserved = bool(call.default_model) and catalogue.is_unserved(call.path, call.model)
        if is_unserved or (call.default_model and call.path != CHAT):
            usable = await catalogue.list_usable(call.path)
            # An unlisted default model is tried first: only the API knows whether it exists.
            if usable and call.model not in usable and (is_unserved or call.model in catalogue.names):
                return [_replace_model(call, MERCURY, usable[0], f"cannot serve {call.path}")]
        return [Target(MERCURY, call.model)]

    async def _share(self, call: Call, targets: list[Target]) -> Completion:
        """Ask the API unless an equal call is under way. The first caller pays."""
        completion, is_joined = await self._cache.share(
            call.cache_key, lambda: self._ask(call, targets, None)
        )
        if is_joined:
            self._usage.count_hit(call.model, call.client)
            return replace(completion, metadata=completion.metadata.unpaid())
        return completion

    async def _ask(self, call: Call, targets: list[Target], report: ProgressCallback | None) -> Completion:
        """Send until a provider answers, a failure is final, or retries or time run out.

        Asks the targets one after the other; only the last one gets retries.
        """
        causes: list[MercuryError] = []
        try:
            return await self._ask_in_turn(call, targets, report, causes)
        finally:
            # A failure refers to the frames that it passed, and these to `causes`: a cycle, which would keep
            # the call's text until the next garbage collection.
            causes.clear()

    async def _ask_in_turn(
        self, call: Call, targets: list[Target], report: ProgressCallback | None, causes: list[MercuryError]
    ) -> Completion:
        """Do the work of `_ask`; `causes` gets the first failure."""
        deadline = self._clock.monotonic() + call.seconds
        pending = list(targets)
        while True:
            target = pending.pop(0)
            provider = self._providers[target.provider]
            unknown = {*provider.unknown_fields}
            if target.model in provider.refuses_temperature:
                unknown.add("temperature")
            call.direct_to(
                target,
                unknown,
                renames_limit=target.model in provider.refuses_max_tokens,
                has_fim=provider.has_fim,
                has_stream_options=provider.has_stream_options,
            )
            key, refused_keys, attempt = "", set[str](), 0
            while True:
                try:
                    if not key:
                        key = provider.keys.pick()
                    return await self._send(call, provider, key, deadline, report)
                except MercuryError as error:
                    if error.code == "BUDGET_EXCEEDED" and causes:
                        causes[0].advise(f"It was not sent again. {error}")
                        causes[0].retry_after = error.retry_after
                        raise causes[0] from None
                    causes[:] = causes or [error]
                    wait = error.retry_after
                    if error.code == "LOCAL_RATE_LIMIT" and call.is_patient and not pending and wait:
                        await asyncio.sleep(wait)
                        deadline = self._clock.monotonic() + call.seconds
                        continue
                    # Not a retry and without delay: the service itself is fine.
                    if error.status in COOLDOWN_SECONDS:  # the key was refused
                        refused_keys.add(key)
                        provider.keys.cool_down(key, error.status, error.retry_after)
                        other_key = provider.keys.find_other(refused_keys)
                        if other_key is not None:
                            key = other_key
                            continue
                    substitute = await self._find_substitute(call, provider, error)
                    pending[:0] = substitute
                    if pending:
                        if not (substitute or _can_fall_back(error)):
                            raise
                        _log.warn("falling back", provider=target.provider, code=error.code, tool=call.tool)
                        break
                    delay = self._retries.delay(error, attempt, deadline - self._clock.monotonic())
                    if delay is None:
                        raise
                    status, seconds = error.status, round(delay, 3)
                    _log.warn("retrying", code=error.code, status=status, seconds=seconds, tool=call.tool)
                await asyncio.sleep(delay)
                # Pick the key again: cool-downs may have ended, and the file may have changed.
                key, refused_keys, attempt = "", set(), attempt + 1

    async def _find_substitute(self, call: Call, provider: Provider, error: MercuryError) -> list[Target]:
        """Return a substitute for a refused call, if any: another endpoint or model, or fewer fields.

        Only a refusal (4xx), which is not billed, has a substitute, and no call gets the same one twice.
        """
        if error.code == "NOT_FOUND" and call.path == FIM:
            # From now on use `COMPLETIONS` directly, unless that is missing too. An API whose list names its
            # models' endpoints is trusted: there the 404 means something else.
            provider.has_fim = call.sent_path == COMPLETIONS or provider.catalogue.lists_endpoints
            return [] if provider.has_fim else [Target(provider.name, call.model)]
        if error.code == "INVALID_REQUEST" and call.is_streamed and "stream_options" in str(error):
            # Our own addition, so it can be left out: try again without, unless this request had none.
            was_sent, provider.has_stream_options = call.asks_usage, False
            return [Target(provider.name, call.model)] if was_sent else []
        if error.code in ("INVALID_REQUEST", "MODEL_NOT_SUITABLE"):
            # Newer models of OpenAI. The limit is never left out: it caps what the answer can cost.
            for name, learned in (
                ("max_tokens", provider.refuses_max_tokens),
                ("temperature", provider.refuses_temperature),
            ):
                if _refuses(error, name) and call.has_field(name) and call.model not in learned:
                    learned.add(call.model)
                    return [Target(provider.name, call.model)]
        # A model that the caller named is never replaced.
        if not call.default_model:
            return []
        catalogue = provider.catalogue
        if error.code in ("MODEL_NOT_FOUND", "MODEL_NOT_SUITABLE") and not call.warnings:
            usable = [name for name in await catalogue.list_usable(call.path) if name != call.model]
            # After `list_usable`, whose refresh would clear it.
            catalogue.mark_unserved(call.path, call.model)
            why = f"cannot serve {call.path}"
            return [_replace_model(call, provider.name, usable[0], why)] if usable else []
        if error.code == "CONTEXT_LENGTH_EXCEEDED":  # possibly several times, with longer and longer contexts
            longer = catalogue.find_longer(await catalogue.list_usable(call.path), call.model)
            why = "has a context too short for this"
            return [] if longer is None else [_replace_model(call, provider.name, longer, why)]
        return []

    async def _send(
        self, call: Call, provider: Provider, key: str, deadline: float, report: ProgressCallback | None
    ) -> Completion:
        """Send a call once: reserve its worst case, send, book how it ended."""
        held = await self._reservations.reserve(call, provider, deadline)
        evidence, answered = NOTHING_PROVEN, ""
        try:
            sent = await self._send_reserved(call, provider, key, deadline, report)
            evidence = sent.evidence
            if sent.completion is not None:
                answered = sent.completion.metadata.model
                if provider.catalogue.find_prices(call.model) is None:
                    # The first answer of a process may arrive before the price list.
                    await provider.catalogue.wait_for_prices()
        finally:
            end = self._reservations.finish(held, evidence, call, provider, answered)
        if sent.completion is None:
            try:
                raise sent.error or AssertionError
            finally:
                del sent  # or the error would keep itself through this frame
        answer = sent.completion.metadata
        answer.cost_usd, answer.budget_left_usd = end.usd, call.left_usd or None
        answer.uncertain_usd = call.uncertain_usd or None
        if end.tokens is not None:
            answer.usage = end.tokens
            waited = answer.time_to_first_token_ms or 0.0
            if call.is_streamed and (answer.duration_ms or 0.0) > waited:
                generating = ((answer.duration_ms or 0.0) - waited) / 1000
                answer.tokens_per_second = round(end.tokens.completion_tokens / generating, 1)
        unsent = ", ".join(call.dropped)
        notes = (
            *call.warnings,
            f"Not sent, because the provider {provider.name} does not know it: {unsent}." if unsent else "",
            _RENAMED if call.is_limit_renamed else "",
            _explain_end(end, held.reservation.worst_usd),
        )
        if any(notes):
            answer.warnings = [*(answer.warnings or ()), *filter(None, notes)]
        if self._routes.routes:
            answer.provider = provider.name
        self._usage.count_answer(call.model, call.client, answer, is_booked=held.reservation.is_booked)
        return sent.completion

    async def _send_reserved(
        self, call: Call, provider: Provider, key: str, deadline: float, report: ProgressCallback | None
    ) -> Sent:
        """Send a call whose worst case is held, unless it is too late or the provider is paused."""
        now, breaker = self._clock.monotonic(), provider.breaker
        if now >= deadline:
            late = MercuryError(
                "TIMEOUT",
                "The call's time was over before the API could be asked. Nothing was sent.",
                next_step="Raise MERCURY_TOTAL_TIMEOUT or give timeout_ms, or make fewer calls at once.",
            )
            return Sent(NOTHING_WRITTEN, error=late)
        if delay := breaker.delay(now):
            paused = MercuryError(
                "SERVICE_DOWN",
                f"The {provider.api.name} keeps failing; calls are paused for {format_seconds(delay)}.",
                retry_after=delay,
                next_step="Call again then.",
            )
            return Sent(NOTHING_WRITTEN, error=paused)
        request_seconds = call.request_seconds or provider.request_seconds
        if call.is_streamed or deadline - now < request_seconds:
            limit = TimeLimit(deadline - now, "MERCURY_TOTAL_TIMEOUT")
        else:
            limit = TimeLimit(request_seconds, "REQUEST_TIMEOUT")
        # Not a variable: the frame of `send`, to which a failure refers, refers to this one.
        return self._note(provider, await provider.api.send(call, key, limit, report))

    def _note(self, provider: Provider, sent: Sent) -> Sent:
        """Learn from how a send ended whether the provider is up."""
        error, breaker = sent.error, provider.breaker
        if isinstance(error, MercuryError):
            provider.name_settings(error)
        # Any answer proves that the service is up, even if it refuses the request. Without a status (a
        # timeout, a cancelled call, an unreadable answer) the state of the service is unknown.
        if isinstance(error, MercuryError) and error.is_outage:
            breaker.record_failure(self._clock.monotonic())
        elif error is None or (isinstance(error, MercuryError) and error.status is not None):
            breaker.record_success()
        else:
            breaker.record_nothing()
        if error is None:
            provider.problem = ""
        return sent

    def _count_failure(self, call: Call) -> None:
        model = self._providers[call.provider].catalogue.counted_name(call.model)
        self._usage.count(model, call.client, UsageCounts(calls=1, errors=1))


def _explain_end(end: End, worst: float | None) -> str:
    """Return the note about the cost of an answer; empty if there is nothing odd about it."""
    if not end.why:
        return ""
    why = end.why[0].upper() + end.why[1:]
    if end.state == "settled":
        return f"{why}."
    if end.tokens is not None and end.usd is None and not worst:
        return ""
    most = f" Up to ${worst:.6f} may be billed." if worst else ""
    return f"{why}, so what this answer cost is not known.{most}"


_DEFAULT_MODEL = {
    FIM: "MERCURY_FIM_MODEL",
    EDIT: "MERCURY_EDIT_MODEL",
    DECISIONS: "A route for mercury_decide in MERCURY_ROUTES_FILE",
}


def _replace_model(call: Call, provider: str, model: str, why: str) -> Target:
    """Replace the default model of a call, and tell the caller."""
    setting = _DEFAULT_MODEL.get(call.path, "MERCURY_MODEL")
    warning = (
        f"The default model {call.default_model} {why}, so {model} answered. {setting} sets the default."
    )
    call.warnings = (warning,)
    _log.warn("default model replaced", model=call.default_model, by=model, endpoint=call.path)
    return Target(provider, model)


def _refuses(error: MercuryError, name: str) -> bool:
    """Return whether an error is that a model does not take a field, or not this value of it."""
    text = str(error)
    is_named = f"(at {name})" in text or f"'{name}'" in text or f"`{name}`" in text
    return is_named and "support" in text.lower()


def _can_fall_back(error: MercuryError) -> bool:
    """Return whether another provider may be asked: this one was not reached, or reported a failure."""
    if error.may_be_billed or error.code in ("TIMEOUT", "BUDGET_EXCEEDED"):
        return False
    return error.is_transient or error.is_outage or error.code in _FALL_BACK


def describe_call(call: Call, completion: Completion | None = None) -> dict[str, object]:
    """Describe a call by OpenTelemetry's semantic conventions for GenAI."""
    about: dict[str, object] = {"gen_ai.provider.name": call.provider, "gen_ai.request.model": call.model}
    if completion is None:
        return about
    metadata = completion.metadata
    about["gen_ai.response.model"] = metadata.model
    if metadata.usage:
        about["gen_ai.usage.input_tokens"] = metadata.usage.prompt_tokens
        about["gen_ai.usage.output_tokens"] = metadata.usage.completion_tokens
    if metadata.cost_usd is not None:
        about["bridgehead.cost_usd"] = metadata.cost_usd
    return about
