"""Budget: limits of money per day and per month (both UTC), in total and per client.

Every send books its worst case before it is sent and its outcome afterwards (`reservations.py`), so that all
processes together never exceed a budget. They share the books, in PostgreSQL (`postgres_budget.py`) if
BRIDGEHEAD_DATABASE_URL is set, otherwise in SQLite (`sqlite_budget.py`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from msgspec import Struct

from bridgehead.runtime import events
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.timing import Clock

from ..errors import MercuryError
from ..settings import MercurySettings
from .usage import utc_day

SHARES = (0.5, 0.8, 0.9, 1.0)
"""Shares of a budget that are published as events, once per period and process."""
_REFUSED = 2.0
"""Above all shares; stands for the event of a refused call."""
_MAX_PUBLISHED = 10_000


State = Literal["open", "settled", "released", "uncertain"]


def format_dollars(amount: float) -> str:
    """Write an amount as people do, without an exponent: $0.00001, $2, $0.5."""
    return f"${amount:.10f}".rstrip("0").rstrip(".")


class Amounts(Struct, frozen=True):
    """US dollars per day and per month; None is no limit."""

    day: float | None = None
    month: float | None = None


class BudgetLimits(Struct, frozen=True):
    """The configured limits."""

    everybody: Amounts = Amounts()
    each_client: Amounts = Amounts()
    clients: dict[str, Amounts] = {}
    """Clients with their own amounts."""

    @classmethod
    def from_settings(cls, settings: MercurySettings) -> BudgetLimits:
        """Return the limits of the settings."""
        return cls(
            Amounts(settings.budget_usd, settings.month_budget_usd),
            Amounts(settings.client_budget_usd, settings.client_month_budget_usd),
            {name: Amounts(day, month) for name, day, month in settings.client_budgets},
        )


class Reservation(Struct, kw_only=True, eq=False):
    """The worst case of one send, and how the send ended."""

    day: str
    """The UTC day whose budget it counts against, whenever it ends."""
    payer: str
    """The token whose budget it counts against."""
    model: str
    client: str
    """The caller's name in usage reports."""
    seconds: float
    """The time limit of the reservation; after that it is uncertain."""
    worst_usd: float | None = None
    """The most it can cost; None if that is not known, which only happens without a budget."""
    id: str = ""
    """Its key in the books."""
    is_booked: bool = False
    """Whether a budget holds the worst case."""
    state: State = "open"
    settled_usd: float | None = None
    spendings: list[Spending] = []
    """What was committed under each budget of the payer, this send included."""

    def left(self) -> dict[str, float]:
        """Return what is left of the payer's budgets after this send, by period."""
        kept = {"settled": self.settled_usd, "released": 0.0}.get(self.state, self.worst_usd) or 0.0
        freed = (self.worst_usd or 0.0) - kept
        left: dict[str, float] = {}
        for spending in self.spendings:
            usd = max(0.0, round(spending.cap.limit - spending.committed + freed, 12))
            left[spending.cap.period] = min(usd, left.get(spending.cap.period, usd))
        return left


class Cap(Struct, frozen=True):
    """One limit that a send has to stay under."""

    limit: float
    setting: str
    is_monthly: bool = False
    client: str | None = None
    """The client that it limits; None limits all together."""

    @property
    def period(self) -> str:
        """The period after which it starts again."""
        return "month" if self.is_monthly else "day"

    @property
    def name(self) -> str:
        """Its description in messages."""
        whose = "" if self.client is None else f" of {self.client}"
        return f"The {self.period}'s budget{whose}"

    def key(self, day: str) -> tuple[str, str]:
        """Return its key in the books: period and payer; an empty payer means all together."""
        return (day[:7] if self.is_monthly else day), self.client or ""

    def seconds_left(self, now: float) -> float:
        """Return the seconds until it starts again."""
        today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self.is_monthly:
            # 32 days after the first of a month is always in the next one.
            begin = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
        else:
            begin = today + timedelta(days=1)
        return begin.timestamp() - now


class Spending(Struct, frozen=True):
    """A budget and its committed amount, which is settled plus uncertain plus reserved."""

    cap: Cap
    committed: float
    uncertain: float = 0.0
    reserved: float = 0.0

    @property
    def settled(self) -> float:
        """The amount that the API has certainly charged."""
        return max(0.0, round(self.committed - self.uncertain - self.reserved, 12))

    @property
    def left(self) -> float:
        """The amount that can still be committed."""
        return max(0.0, self.cap.limit - self.committed)


class OverBudget(Exception):
    """A send would exceed a cap; nothing was booked."""

    def __init__(self, cap: Cap) -> None:
        super().__init__()
        self.cap = cap


class ReleasedSends(Struct, frozen=True):
    """Uncertain sends whose money the payer has released."""

    day: str
    model: str
    client: str
    sends: int
    usd: float


class BudgetStore(Protocol):
    """The books, shared by all processes that have the same budgets."""

    async def reserve(self, reservation: Reservation, caps: Sequence[Cap]) -> list[Spending]:
        """Book the worst case under every cap or under none; raises `OverBudget` and `BridgeError`.

        Returns the committed amounts, durably stored.
        """

    def finish(self, reservation: Reservation) -> None:
        """Queue the outcome of a send; a send without a reservation is booked only if it is uncertain."""

    async def spending(self, day: str, caps: Sequence[Cap]) -> list[Spending]:
        """Return the committed amount under each cap; raises `BridgeError`."""

    @property
    def problem(self) -> str:
        """Why nothing can be booked; empty as long as it can."""

    async def check(self) -> None:
        """Raise `BridgeError` if nothing can be booked."""

    async def close(self) -> None:
        """Book the queued outcomes, and close."""


class Budget:
    """All budgets."""

    def __init__(self, store: BudgetStore, clock: Clock, limits: BudgetLimits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self.is_set = limits != BudgetLimits()
        """Whether money is limited at all."""
        self._latest: dict[str, tuple[str, Spending]] = {}
        """The spending of the shared budgets as of the last read, by period, with the key of that period."""
        self._published: dict[tuple[str, str | None, str], float] = {}
        """The highest published share, by setting, client and period."""

    def caps(self, client: str) -> list[Cap]:
        """Return every limit that applies to a call of a client."""
        everybody = self._limits.everybody
        own = self._limits.clients.get(client)
        daily = "MERCURY_CLIENT_BUDGETS" if own else "MERCURY_CLIENT_BUDGET_USD"
        monthly = "MERCURY_CLIENT_BUDGETS" if own else "MERCURY_CLIENT_MONTH_BUDGET_USD"
        each = own or self._limits.each_client
        candidates = (
            (everybody.day, "MERCURY_BUDGET_USD", False, None),
            (everybody.month, "MERCURY_MONTH_BUDGET_USD", True, None),
            (each.day, daily, False, client),
            (each.month, monthly, True, client),
        )
        return [
            Cap(limit, setting, is_monthly, whose)
            for limit, setting, is_monthly, whose in candidates
            if limit is not None
        ]

    async def reserve(self, reservation: Reservation) -> None:
        """Book the worst case of a send; raises if too little is left."""
        caps = self.caps(reservation.payer)
        if not caps:
            return
        reservation.id = secrets.token_hex(16)
        booking = asyncio.ensure_future(self._store.reserve(reservation, caps))
        try:
            # Not `shield`: since Python 3.14 it prints a failure that comes after the cancellation.
            await asyncio.wait([booking])
            spendings = booking.result()
        except OverBudget as over:
            raise await self._refuse(reservation, over.cap) from None
        except asyncio.CancelledError:
            # The booking continues although nothing will be sent: release it once it is done. Cancelling it
            # instead could leave a reservation whose answer is lost.
            def release(booking: asyncio.Future[list[Spending]]) -> None:
                if not booking.cancelled() and booking.exception() is None:
                    reservation.is_booked, reservation.state = True, "released"
                    self._store.finish(reservation)

            booking.add_done_callback(release)
            raise
        reservation.is_booked, reservation.spendings = True, spendings
        await self._note(reservation.day, spendings)

    def finish(self, reservation: Reservation) -> None:
        """Book the outcome of a send. Without a booked reservation, only an uncertain one is booked."""
        if reservation.is_booked or reservation.state == "uncertain":
            self._store.finish(reservation)

    async def spending(self, client: str) -> tuple[str, list[Spending]]:
        """Return today's date and the spending of each budget of a client; raises `BridgeError`."""
        today, caps = utc_day(self._clock.now()), self.caps(client)
        spendings = await self._store.spending(today, caps) if caps else []
        await self._note(today, spendings, is_fresh=True)
        return today, spendings

    async def check(self) -> None:
        """Read the shared budgets, so that `left` is no older than this check, and try to write."""
        if self.is_set:
            with suppress(BridgeError):  # `problem` reports it
                await self.spending("")
                await self._store.check()

    def left(self) -> dict[str, float]:
        """Return the remainder of the shared budgets by period, as of the last read."""
        today = utc_day(self._clock.now())
        return {
            # A period that began after the last read still has its whole budget.
            period: spending.left if key == spending.cap.key(today)[0] else spending.cap.limit
            for period, (key, spending) in self._latest.items()
        }

    @property
    def problem(self) -> str:
        """Why paid calls fail: there is a budget, and its books cannot be written. Empty otherwise."""
        return self._store.problem if self.is_set else ""

    async def _refuse(self, reservation: Reservation, cap: Cap) -> MercuryError:
        [spending] = await self._store.spending(reservation.day, [cap])
        self._publish(reservation.day, spending, _REFUSED)
        uncertain, advice = "", ""
        if spending.uncertain:
            uncertain = (
                f" ${spending.uncertain:.6f} of it is uncertain: sends that failed after they were written "
                "and may be billed."
            )
            advice = (
                " Check the API's bill; `bridgehead mercury usage --release` releases what was not charged."
            )
        return MercuryError(
            "BUDGET_EXCEEDED",
            f"{cap.name} of {format_dollars(cap.limit)} has ${spending.left:.6f} left; this call can cost "
            f"${reservation.worst_usd:.6f}.{uncertain}",
            retry_after=round(cap.seconds_left(self._clock.now())),
            next_step=f"Ask for less (smaller max_tokens, a cheaper model), raise {cap.setting}, or wait for "
            f"the next UTC {cap.period}.{advice}",
        )

    async def _note(self, day: str, spendings: list[Spending], *, is_fresh: bool = False) -> None:
        """Store the latest spending, and publish each share of a budget once it is reached."""
        for spending in spendings:
            cap = spending.cap
            if cap.client is None:
                self._latest[cap.period] = cap.key(day)[0], spending
            reached = [share for share in SHARES if spending.committed >= share * cap.limit]
            if reached and self._published.get((cap.setting, *cap.key(day)), 0.0) < reached[-1]:
                # A reservation returns totals only: the uncertain part is read when there is an event to
                # send.
                [told] = [spending] if is_fresh else await self._store.spending(day, [cap])
                self._publish(day, told, reached[-1])

    def _publish(self, day: str, spending: Spending, share: float) -> None:
        cap = spending.cap
        key = (cap.setting, *cap.key(day))
        if self._published.get(key, 0.0) >= share:
            return
        # Clearing loses which events were published: at worst one is published twice.
        if len(self._published) >= _MAX_PUBLISHED:
            self._published.clear()
        self._published[key] = share
        events.publish(
            "budget.refused" if share == _REFUSED else "budget.threshold",
            bridge="mercury",
            period=cap.period,
            client=cap.client,
            percent=round(100 * spending.committed / cap.limit, 1) if cap.limit else 100.0,
            limit_usd=cap.limit,
            left_usd=round(spending.left, 6),
            settled_usd=round(spending.settled, 6),
            uncertain_usd=round(spending.uncertain, 6),
            reserved_usd=round(spending.reserved, 6),
        )
