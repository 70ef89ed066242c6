"""Reservations: hold the worst case of one send, in money and in rate limits, until its end is known.

A send is one request written to a socket: the first attempt, a retry or a fallback. It reserves its worst
case before anything is written and ends in one of three states:

    settled     the API reported the usage of the send; it replaces the worst case
    released    the API certainly did no work: nothing was written, or it answered 4xx (but not 408)
    uncertain   anything else: 408, 5xx, a timeout, a lost connection, a cut stream, an answer without usage

Uncertain money stays committed until the end of its budget period, unless the payer releases it (`bridgehead
mercury usage --release`). A process that dies leaves its reservations open; they become uncertain after their
`seconds`, by the clock of the database.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridgehead.runtime import events, logs
from bridgehead.runtime.timing import Clock

from ..api.catalogue import Catalogue
from ..api.refusals import unknown_model
from ..api.wire import EMBEDDINGS
from ..errors import MercuryError
from .budget import Budget, Reservation
from .call import ANONYMOUS, Call
from .provider import Provider
from .rate_limits import RateLimits, WindowEntries
from .usage import Usage, utc_day

GRACE_SECONDS = 30.0
"""How long a reservation may stay open after its call's deadline. No send can be under way by then."""
_UNBILLED = range(400, 500)
_REQUEST_TIMEOUT = 408
_log = logs.logger("mercury.reservations")


class Reservations:
    """Reserves the worst cases of sends, and books how they end."""

    def __init__(self, clock: Clock, rate_limits: RateLimits, budget: Budget, usage: Usage) -> None:
        self._clock = clock
        self._rate_limits = rate_limits
        self._budget = budget
        self._usage = usage

    @asynccontextmanager
    async def reserve(self, call: Call, provider: Provider, deadline: float) -> AsyncIterator[Reservation]:
        """Hold the worst case of one send; raises `MercuryError` if a limit or a budget is reached.

        Unless the block settles it, the exception that leaves the block decides how the send ended.
        """
        catalogue = provider.catalogue
        # With a budget, prices and the longest answer have to be known before the send; otherwise the list
        # may come later.
        if self._budget.is_set or self._rate_limits.needs_output_length:
            await catalogue.load(deadline - self._clock.monotonic())
        else:
            catalogue.renew()
        call.is_written = False
        reservation = Reservation(
            day=utc_day(self._clock.now()),
            payer=call.principal or ANONYMOUS,
            model=catalogue.counted_name(call.model),
            client=self._usage.counted_client(call.client),
            seconds=max(0.0, deadline - self._clock.monotonic()) + GRACE_SECONDS,
        )
        # Rate limits first: they are cheaper to check than the database of the budget.
        entries: WindowEntries | None = None
        if self._rate_limits.is_on or provider.rate_limit is not None:
            entries = await self._rate_limits.take(
                call.account,
                provider.rate_limit,
                is_first=not call.is_counted,
                is_patient=call.is_patient,
                input_tokens=call.max_input_tokens,
                # Looked up only if output tokens are limited.
                output_tokens=longest_answer(call, catalogue) if self._rate_limits.needs_output_length else 0,
                deadline=deadline,
            )
            call.is_counted = True
        error: BaseException | None = None
        try:
            if self._budget.is_set:
                reservation.worst_usd = price_worst_case(call, provider)
                await self._budget.reserve(reservation)
            yield reservation
        except BaseException as problem:
            error = problem
            raise
        finally:
            if reservation.state == "open":
                # A 4xx proves that the API did no work. 408 and 5xx prove nothing: gateways answer 502 and
                # 504 also after the model has run.
                status = error.status if isinstance(error, MercuryError) else None
                is_unbilled = status in _UNBILLED and status != _REQUEST_TIMEOUT
                reservation.state = "released" if is_unbilled or not call.is_written else "uncertain"
            call.tries += call.is_written
            self._finish(reservation, entries, call, catalogue)

    def _finish(
        self, reservation: Reservation, entries: WindowEntries | None, call: Call, catalogue: Catalogue
    ) -> None:
        if reservation.state == "released":
            self._rate_limits.correct(entries, 0, 0)
        elif reservation.state == "settled":
            used, settled, worst = reservation.used, reservation.settled_usd, reservation.worst_usd
            if used is not None and used.total_tokens:
                self._rate_limits.correct(entries, used.prompt_tokens, used.completion_tokens)
            if reservation.is_booked and settled is not None and worst is not None and settled > worst:
                _log.warn(
                    "the API charged more than its prices and max_tokens allow",
                    model=call.model,
                    charged_usd=settled,
                    expected_usd=worst,
                )
                # The cached price list is wrong: the next send reads a new one.
                catalogue.expire()
        else:
            if reservation.worst_usd is None:  # without a budget, priced only now for the report
                reservation.worst_usd = catalogue.worst_cost(
                    call.model, call.max_input_tokens, longest_answer(call, catalogue) or 0
                )
            call.uncertain_usd += reservation.worst_usd or 0.0
            self._usage.count_uncertain(reservation.model, reservation.worst_usd)
            events.publish(
                "budget.uncertain",
                bridge="mercury",
                day=reservation.day,
                model=reservation.model,
                client=reservation.client,
                usd=reservation.worst_usd,
            )
        self._budget.finish(reservation)


def longest_answer(call: Call, catalogue: Catalogue) -> int | None:
    """Return the maximum number of tokens in the answer; None if nothing limits it."""
    if call.path == EMBEDDINGS:
        return 0  # embeddings produce no output tokens
    return call.max_tokens or catalogue.max_output(call.model)


def price_worst_case(call: Call, provider: Provider) -> float:
    """Return the maximum cost of a send; raises if it is unknown."""
    catalogue = provider.catalogue
    names, longest = catalogue.names, longest_answer(call, catalogue)
    if names and call.model not in names:
        raise unknown_model(call.model, names, provider.api.name)
    if longest is None:
        raise MercuryError(
            "PRICE_UNKNOWN",
            f"A budget is set, but the longest possible answer of {call.model!r} is not known.",
            next_step="Give max_tokens, or use a model that mercury_list_models lists.",
        )
    if names and not catalogue.has_current_price(call.model):
        raise MercuryError(
            "PRICE_UNKNOWN",
            "There is a budget, and the API's prices are too old to trust and could not be renewed.",
            next_step="Try again in a minute; `bridgehead mercury doctor` checks the list of models.",
        )
    worst = catalogue.worst_cost(call.model, call.max_input_tokens, longest)
    if worst is None:
        raise MercuryError("PRICE_UNKNOWN", "There is a budget, and the price of this model is not known.")
    return worst
