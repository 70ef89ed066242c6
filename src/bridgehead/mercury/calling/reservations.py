"""Reservations: hold the worst case of one send, in money and in rate limits, until its end is known.

A send is one request written to a socket: the first attempt, a retry or a fallback. It reserves its worst
case before anything is written. What is known of it afterwards decides how it ends: settled, released or
uncertain (`settlement.py`).

Uncertain money stays committed until the end of its budget period, unless the payer releases it (`bridgehead
mercury usage --release`). A process that dies leaves its reservations open; they become uncertain after their
`seconds`, by the clock of the database.
"""

from __future__ import annotations

from msgspec import Struct

from bridgehead.runtime import events, logs
from bridgehead.runtime.timing import Clock

from ..api.catalogue import Catalogue
from ..api.evidence import Evidence
from ..api.refusals import unknown_model
from ..api.wire import EMBEDDINGS
from ..errors import MercuryError
from .budget import Budget, Reservation
from .call import ANONYMOUS, Call
from .provider import Provider
from .rate_limits import RateLimits, WindowEntries
from .settlement import End, Terms, decide_end
from .usage import Usage

GRACE_SECONDS = 30.0
"""How long a reservation may stay open after its call's deadline. No send can be under way by then."""
_log = logs.logger("mercury.reservations")


class Held(Struct, frozen=True):
    """What one send holds until its end is known."""

    reservation: Reservation
    entries: WindowEntries | None
    """Its amounts in the rate limits."""


class Reservations:
    """Reserves the worst cases of sends, and books how they end."""

    def __init__(self, clock: Clock, rate_limits: RateLimits, budget: Budget, usage: Usage) -> None:
        self._clock = clock
        self._rate_limits = rate_limits
        self._budget = budget
        self._usage = usage

    async def reserve(self, call: Call, provider: Provider, deadline: float) -> Held:
        """Hold the worst case of one send; raises `MercuryError` if a limit or a budget is reached.

        `finish` has to follow, however the send ends.
        """
        catalogue = provider.catalogue
        # With a budget, prices and the longest answer have to be known before the send; otherwise the list
        # may come later.
        unlisted: MercuryError | None = None
        if self._budget.is_set or self._rate_limits.needs_output_length:
            unlisted = await catalogue.load(deadline - self._clock.monotonic())
        else:
            catalogue.renew()
        reservation = Reservation(
            day=self._usage.today,
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
        if self._budget.is_set:
            try:
                reservation.worst_usd = price_worst_case(call, provider, unlisted)
                await self._budget.reserve(reservation)
            except BaseException:
                self._rate_limits.correct(entries, 0, 0)
                raise
        return Held(reservation, entries)

    def finish(
        self, held: Held, evidence: Evidence, call: Call, provider: Provider, answered: str = ""
    ) -> End:
        """Book how a send has ended; `answered` is the model that the answer names."""
        reservation, catalogue = held.reservation, provider.catalogue
        if reservation.worst_usd is None:  # without a budget
            prices = catalogue.find_prices(call.model)
            if prices is not None:
                reservation.worst_usd = prices.worst_cost(
                    call.max_input_tokens, longest_answer(call, catalogue) or 0
                )
        model = catalogue.find_answering(answered, call.model)
        most_written = catalogue.max_output(model)
        end = decide_end(
            evidence,
            Terms(
                catalogue.find_prices(model),
                reservation.worst_usd,
                catalogue.context_length(model),
                0 if call.path == EMBEDDINGS else most_written and max(most_written, call.max_tokens or 0),
                bills_refusals=provider.bills_refusals,
            ),
        )
        call.tries += evidence.is_written
        self._rate_limits.correct(held.entries, *_used_tokens(end))
        reservation.state, reservation.settled_usd = end.state, end.usd
        if end.state == "settled" and end.why:
            _log.warn(
                "the API charged more than its prices and max_tokens allow",
                model=call.model,
                charged_usd=end.usd,
                expected_usd=reservation.worst_usd,
            )
            # The cached price list is wrong: the next send waits for a new one.
            catalogue.expire()
        elif end.state == "uncertain" and not reservation.is_booked and end.tokens is not None:
            # Without a budget nothing is held for an answer whose price is not known: it is priced later.
            reservation.state = "settled"
        elif end.state == "uncertain":
            call.uncertain_usd += reservation.worst_usd or 0.0
            self._usage.count_uncertain(reservation.model, reservation.worst_usd)
            events.publish(
                "budget.uncertain",
                bridge="mercury",
                day=reservation.day,
                model=reservation.model,
                client=reservation.client,
                usd=reservation.worst_usd,
                why=end.why,
            )
        elif end.usd:  # without a usable answer too, as for a refusal that is billed
            call.cost_usd = end.usd
        self._budget.finish(reservation)
        call.left_usd = reservation.left()
        return end


def _used_tokens(end: End) -> tuple[int | None, int | None]:
    """Return how many tokens count in the rate limits; None leaves the number that was taken."""
    if end.state == "released":
        return 0, 0
    if end.tokens is None:
        return None, None
    return end.tokens.prompt_tokens, end.tokens.total_tokens - end.tokens.prompt_tokens


def longest_answer(call: Call, catalogue: Catalogue) -> int | None:
    """Return the maximum number of tokens in the answer; None if nothing limits it."""
    if call.path == EMBEDDINGS:
        return 0  # embeddings produce no output tokens
    return call.max_tokens or catalogue.max_output(call.model)


def price_worst_case(call: Call, provider: Provider, unlisted: MercuryError | None) -> float:
    """Return the maximum cost of a send; raises if it is unknown.

    `unlisted` is why there is no list of models: a wrong key or no network is then the true cause.
    """
    catalogue = provider.catalogue
    names, longest = catalogue.names, longest_answer(call, catalogue)
    prices = catalogue.find_prices(call.model)
    if unlisted is not None and unlisted.code not in _LISTLESS and (prices is None or longest is None):
        unlisted.is_transient = False  # the next call asks for the list again
        raise unlisted
    if names and call.model not in names:
        raise unknown_model(call.model, names, provider.api.name)
    if prices is None:
        raise MercuryError(
            "PRICE_UNKNOWN", f"There is a budget, and the price of {call.model!r} is not known."
        )
    if longest is None:
        raise MercuryError(
            "PRICE_UNKNOWN",
            f"A budget is set, but the longest possible answer of {call.model!r} is not known.",
            next_step="Give max_tokens, or set max_output for the model in MERCURY_ROUTES_FILE.",
        )
    if not catalogue.has_current_price(call.model):
        raise MercuryError(
            "PRICE_UNKNOWN",
            "There is a budget, and the API charged more than its listed prices; there are no newer ones.",
            next_step="Try again in a minute; `bridgehead mercury doctor` checks the list of models.",
        )
    return prices.worst_cost(call.max_input_tokens, longest)


_LISTLESS = ("NOT_FOUND", "MODEL_NOT_FOUND", "BAD_RESPONSE", "INVALID_REQUEST")
"""How a server answers that has no list of models, or none that can be read."""
