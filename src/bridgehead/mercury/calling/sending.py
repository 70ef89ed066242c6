"""Sending: the way of one call to the API, through everything that may stop, delay or repeat it.

    limits of the client → tries, each: a key → limits and budget, for the worst case → breaker → the API

What was held for a try is settled when it is known what it used. Where nobody can know, because an answer was
lost on its way, the worst case stays.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.clock import Clock

from ..accounts import Accounts, Reservation
from ..api.catalogue import Catalogue
from ..completion import Completed
from ..errors import ApiFailed, LimitReached, MercuryError
from ..failures import unknown_model
from .breaker import Breaker
from .call import Call
from .keys import ASIDE_SECONDS, Keys
from .limits import UNKNOWN, Held, Limits
from .retries import Retries

Send = Callable[[Call, str, float], Awaitable[Completed]]
"""Sends a call once, with a key, within some seconds."""

_log = logs.logger("mercury.sending")


class Hold(Struct):
    """What is held for one request while it is under way."""

    input_tokens: int
    output_tokens: int
    limits: list[Held]
    money: Reservation | None = None


class Sender:
    """Sends calls."""

    def __init__(
        self,
        clock: Clock,
        *,
        keys: Keys,
        catalogue: Catalogue,
        limits: Limits,
        accounts: Accounts,
        breaker: Breaker,
        retries: Retries,
    ) -> None:
        self._clock = clock
        self._keys = keys
        self._catalogue = catalogue
        self._limits = limits
        self._accounts = accounts
        self._breaker = breaker
        self._retries = retries
        self._needs_models = accounts.budget is not None or limits.are_on_output
        """Whether a call's worst case has to be known before it goes out."""

    async def send(self, call: Call, send: Send) -> Completed:
        """Send a call until it is answered, or cannot be; raises `MercuryError`."""
        deadline = self._clock.monotonic() + call.seconds
        await self._limits.admit_call(call.client, deadline)
        if self._needs_models:
            await self._catalogue.known()

        async def attempt() -> Completed:
            return await self._with_some_key(call, send, deadline)

        def on_retry(error: MercuryError, wait: float) -> None:
            _log.warn(
                "retrying", code=error.code, status=error.status, seconds=round(wait, 3), tool=call.tool
            )

        return await self._retries.run(attempt, deadline, on_retry)

    async def _with_some_key(self, call: Call, send: Send, deadline: float) -> Completed:
        """Try once, and once more with each other key while a key is what the API does not accept."""
        key = self._keys.pick()
        tried: set[str] = set()
        while True:
            try:
                return await self._once(call, key, send, deadline)
            except MercuryError as error:
                if error.status not in ASIDE_SECONDS:
                    raise
                tried.add(key)
                self._keys.put_aside(key, error.status, error.retry_after)
                another = self._keys.another(tried)
                if another is None:
                    raise
                key = another

    async def _once(self, call: Call, key: str, send: Send, deadline: float) -> Completed:
        hold = await self._hold(call, deadline)
        seconds = min(call.request_seconds, deadline - self._clock.monotonic())
        try:
            self._pass_breaker(seconds)
            call.tries += 1
            completed = await send(call, key, seconds)
        except MercuryError as error:
            self._failed(error, hold)
            raise
        except BaseException:  # cancelled: nobody knows what the service did
            self._breaker.unknown()
            self._settle(hold, None)
            raise
        self._breaker.succeeded()
        self._settle(hold, completed)
        return completed

    def _pass_breaker(self, seconds: float) -> None:
        """Let a request out, unless the service is left alone for now, or no time is left."""
        if seconds <= 0:
            raise OutOfTime
        delay = self._breaker.delay(self._clock.monotonic())
        if delay:
            raise ServiceDown(delay)

    def _failed(self, error: MercuryError, hold: Hold) -> None:
        if isinstance(error, ServiceDown | OutOfTime):
            pass  # nothing went out, so nothing is known
        elif error.is_outage:
            self._breaker.failed(self._clock.monotonic())
        elif error.status is not None:
            self._breaker.succeeded()
        else:
            self._breaker.unknown()
        if error.is_charge_possible:
            self._settle(hold, None)
        else:
            self._limits.settle(hold.limits, 0, 0)
            self._accounts.settle(hold.money, 0.0)

    async def _hold(self, call: Call, deadline: float) -> Hold:
        """Hold money and room for the most that a request can use: a token has at least one byte.

        Money first, since writing it down takes time: room is counted from the moment at which it is taken,
        and the request has to go out right then.
        """
        most = call.most_tokens or self._catalogue.most_output(call.model)
        hold = Hold(len(call.body), UNKNOWN if most is None else most, [])
        if self._accounts.budget is not None:
            hold.money = await self._accounts.reserve(self._worst_cost(call, most))
        try:
            hold.limits = await self._limits.admit_request(
                call.client, hold.input_tokens, hold.output_tokens, deadline
            )
        except BaseException:
            self._accounts.settle(hold.money, 0.0)
            raise
        return hold

    def _worst_cost(self, call: Call, most: int | None) -> float | None:
        names = self._catalogue.names
        if names and call.model not in names:
            raise unknown_model(call.model, names)
        if most is None:
            raise _no_end(call.model)
        return self._catalogue.worst_cost(call.model, len(call.body), most)

    def _settle(self, hold: Hold, completed: Completed | None) -> None:
        """Put what was used in the place of what was held; where it is not known, the worst case stays."""
        used = None if completed is None else completed.metadata.usage
        if used is None or completed is None or not used.total_tokens:
            return
        self._limits.settle(hold.limits, used.prompt_tokens, used.completion_tokens)
        self._accounts.settle(hold.money, completed.metadata.cost_usd)


class ServiceDown(ApiFailed):
    """The service fails, and is left alone for a while."""

    def __init__(self, delay: float) -> None:
        super().__init__(
            "The Mercury API has failed again and again, so it is left alone for a while.",
            "SERVICE_DOWN",
            retry_after=delay,
            next_step=f"It is tried again in {delay:.3g} s; call again then.",
        )


class OutOfTime(ApiFailed):
    """There is no time left for a try."""

    def __init__(self) -> None:
        super().__init__(
            "The call's time was over before the Mercury API could be asked.",
            "TIMEOUT",
            next_step="Allow more with timeout_ms, or call again with fewer calls at once.",
        )


def _no_end(model: str) -> MercuryError:
    return LimitReached(
        f"There is a budget, and it is not known how long an answer of {model!r} can get.",
        "PRICE_UNKNOWN",
        next_step="Give max_tokens, or use a model that mercury_list_models lists.",
    )
