"""Admission: what lets a call in and its requests out, which is room in the limits and money.

A request gets both for the most that it can use, and what it did use takes their place later. In one process
they are taken one after the other. Replicas take them in Redis, all in one round trip, together with the
right to send a call that others make as well; whatever refuses gives back what was taken before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from bridgehead.runtime.stores.joint import Claim, Joint

from ..api.refusals import unknown_model
from ..errors import MercuryError
from .budget import Budget, Reservation
from .call import ANONYMOUS, Call
from .limits import UNKNOWN, CallClaim, Limits, Room, RoomClaim
from .provider import Provider

if TYPE_CHECKING:
    from bridgehead.runtime.stores.ledger import MoneyClaim
    from bridgehead.runtime.stores.redis import Redis


class Hold(Struct):
    """What is reserved for one request while it is under way."""

    limits: Room | None = None
    money: Reservation | None = None
    provider: RoomClaim | None = None
    """Room in the provider's own limit, where replicas share it."""


class Passage(Protocol):
    """The way of one call through the limits and the budget."""

    deadline: float
    """When the call's time is over."""
    needs: Joint | None
    """What can be asked of Redis already; None where there is nothing, or no Redis."""

    async def admit_call(self, call: Call) -> None:
        """Let the call in; raises where a limit is reached."""

    async def reserve(self, call: Call, provider: Provider) -> Hold:
        """Reserve money and room for the most that a request can use."""

    def close(self) -> None:
        """Give back what was taken ahead and not used."""


class Admission:
    """Lets calls in, as one process or as all replicas count."""

    def __init__(self, limits: Limits, budget: Budget, redis: Redis | None = None) -> None:
        self.limits = limits
        self.budget = budget
        self.redis = redis
        self._needs_prices = budget.is_set or limits.are_on_output
        """Whether a call's worst case has to be known before it goes out."""

    def begin(self, call: Call, provider: Provider, now: float) -> Passage:
        """Begin the way of a call, whose first provider is known and whose time runs from now on."""
        deadline = now + call.seconds
        if self.redis is None:
            return LocalPassage(self.limits, self.budget, deadline)
        return SharedPassage(self, self.redis, call, provider, deadline)

    def has_to_wait_for_prices(self, provider: Provider) -> bool:
        """Tell whether a call needs a provider's prices first; otherwise old ones are renewed meanwhile."""
        if self._needs_prices:
            return not provider.catalogue.is_loaded
        provider.catalogue.renew()
        return False

    def settle(self, hold: Hold, input_tokens: int, output_tokens: int, spent: float | None) -> None:
        """Put what was used in the place of what was reserved."""
        self.limits.settle(hold.limits, input_tokens, output_tokens)
        self.budget.settle(hold.money, spent)


class LocalPassage:
    """The way of a call in a process that counts for itself."""

    def __init__(self, limits: Limits, budget: Budget, deadline: float) -> None:
        self.deadline = deadline
        self.needs: Joint | None = None
        self._limits = limits
        self._budget = budget

    async def admit_call(self, call: Call) -> None:
        """Let the call in; raises where a limit is reached."""
        if self._limits.are_on:
            await self._limits.admit_call(call.account, self.deadline)

    async def reserve(self, call: Call, provider: Provider) -> Hold:
        """Reserve for the most that a request can use: a token has at least one byte.

        Money first, since writing it down takes time: tokens are counted from the moment at which they are
        reserved, and the request has to go out right then.
        """
        hold = Hold()
        if not (self._budget.is_set or self._limits.are_on):
            return hold
        most = _longest_answer(call, provider)
        if self._budget.is_set:
            hold.money = await self._budget.reserve(
                call.principal or ANONYMOUS, _price_worst_case(call, provider, most)
            )
        try:
            hold.limits = await self._limits.admit_request(
                call.account, len(call.body), UNKNOWN if most is None else most, self.deadline
            )
        except BaseException:
            self._budget.settle(hold.money, 0.0)
            raise
        return hold

    def close(self) -> None:
        """Nothing is taken ahead."""


class RequestClaims:
    """What one request needs of Redis."""

    def __init__(self, money: MoneyClaim | None, room: RoomClaim | None, provider: RoomClaim | None) -> None:
        self.money = money
        self.room = room
        self.provider = provider

    def list(self) -> list[Claim]:
        """Return those there are, in the order in which they are asked for."""
        return [claim for claim in (self.money, self.room, self.provider) if claim is not None]

    def to_hold(self) -> Hold:
        """Return what is reserved once all are granted."""
        return Hold(
            None if self.room is None else self.room.room,
            None if self.money is None else Reservation.of(self.money),
            self.provider,
        )


class SharedPassage:
    """The way of a call where replicas count together."""

    def __init__(
        self, admission: Admission, redis: Redis, call: Call, provider: Provider, deadline: float
    ) -> None:
        self.deadline = deadline
        self._admission = admission
        self._redis = redis
        self._call: CallClaim | None = admission.limits.claim_call(call.account)
        self._first = self._foresee(call, provider)
        """What the first request needs, where that can be known before anything is waited for."""
        first = [] if self._first is None else self._first.list()
        self.needs: Joint | None = Joint(redis, [*([] if self._call is None else [self._call]), *first])

    def _foresee(self, call: Call, provider: Provider) -> RequestClaims | None:
        try:
            return self._make_claims(call, provider)
        except MercuryError:  # it is raised again where the request is about to go out
            return None

    def _make_claims(self, call: Call, provider: Provider) -> RequestClaims:
        limits, budget = self._admission.limits, self._admission.budget
        most = _longest_answer(call, provider)
        money = None
        if budget.is_set:
            money = budget.claim(call.principal or ANONYMOUS, _price_worst_case(call, provider, most))
        room = limits.claim_request(call.account, len(call.body), UNKNOWN if most is None else most)
        return RequestClaims(money, room, provider.claim())

    async def admit_call(self, call: Call) -> None:
        """Let the call in; what its first request needs is asked for in the same round trip."""
        del call
        if self._call is not None and self.needs is not None:
            await self.needs.obtain(self.deadline, 1)

    async def reserve(self, call: Call, provider: Provider) -> Hold:
        """Reserve for the most that a request can use; the first one has it already, if all went well."""
        claims, self._first = self._first, None
        needs, self.needs = self.needs, None
        if claims is None or needs is None:
            claims = self._make_claims(call, provider)
            needs = Joint(self._redis, claims.list())
        await needs.obtain(self.deadline)
        return claims.to_hold()

    def close(self) -> None:
        """Give back what was taken ahead and not used."""
        if self.needs is not None:
            self.needs.give_back()


def _longest_answer(call: Call, provider: Provider) -> int | None:
    return call.max_tokens or provider.catalogue.max_output(call.model)


def _price_worst_case(call: Call, provider: Provider, most: int | None) -> float | None:
    names = provider.catalogue.names
    if names and call.model not in names:
        raise unknown_model(call.model, names)
    if most is None:
        raise MercuryError(
            "PRICE_UNKNOWN",
            f"There is a budget, and it is not known how long an answer of {call.model!r} can get.",
            next_step="Give max_tokens, or use a model that mercury_list_models lists.",
        )
    if names and not provider.catalogue.has_current_price(call.model):
        raise MercuryError(
            "PRICE_UNKNOWN",
            "There is a budget, and the API's prices are too old to trust and could not be renewed.",
            next_step="Try again in a minute; `bridgehead mercury doctor` checks the list of models.",
        )
    return provider.catalogue.worst_cost(call.model, len(call.body), most)
