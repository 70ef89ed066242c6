"""Budget: money is committed for a request's worst case before it goes out, and corrected after.

So the total of all processes never passes a budget, be it that of everybody or of one client, of the day or
of the month (both UTC). Committed money counts as spent until it is settled: a process that dies in between
leaves the total too high, and never too low.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from bridgehead.runtime import events
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.timing import Clock

from ..errors import MercuryError
from ..settings import MercurySettings
from .usage_store import Refusal, UsageStore, Work, counted_client

if TYPE_CHECKING:  # loaded where replicas share a budget
    from bridgehead.runtime.stores.ledger import Committed, Counter, MoneyClaim, SharedLedger

SHARES = (0.5, 0.8, 0.9, 1.0)
"""Shares of a budget that are told as events, once a period and process."""
REFUSED = 2.0
"""Stands beyond all of them: a call was refused."""
_MOST_TOLD = 10_000


class Amounts(Struct, frozen=True):
    """US dollars for a day and for a month; None is no limit."""

    day: float | None = None
    month: float | None = None


class BudgetLimits(Struct, frozen=True):
    """What may be spent."""

    everybody: Amounts = Amounts()
    each_client: Amounts = Amounts()
    clients: dict[str, Amounts] = {}
    """Clients with amounts of their own."""

    @classmethod
    def from_settings(cls, settings: MercurySettings) -> BudgetLimits:
        """Return the limits that are set."""
        return cls(
            Amounts(settings.budget_usd, settings.month_budget_usd),
            Amounts(settings.client_budget_usd, settings.client_month_budget_usd),
            {name: Amounts(day, month) for name, day, month in settings.client_budgets},
        )


class Cap(Struct, frozen=True):
    """One limit that a request has to stay under."""

    limit: float
    setting: str
    is_monthly: bool = False
    client: str | None = None
    """Whose it is; None is everybody's."""

    @property
    def period(self) -> str:
        """After which it begins anew."""
        return "month" if self.is_monthly else "day"

    @property
    def name(self) -> str:
        """What to call it."""
        whose = "" if self.client is None else f" of {self.client}"
        return f"The {self.period}'s budget{whose}"

    def first_day(self, today: str) -> str:
        """Return the first day that counts."""
        return f"{today[:7]}-01" if self.is_monthly else today

    def seconds_left(self, now: float) -> float:
        """Return the seconds until it begins anew."""
        today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self.is_monthly:
            begin = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
        else:
            begin = today + timedelta(days=1)
        return begin.timestamp() - now


class Reservation(Struct, frozen=True):
    """Money committed for one request, on one day."""

    amount: float
    day: str
    client: str
    name: str = ""
    """What the shared ledger knows it by."""

    @classmethod
    def of(cls, claim: MoneyClaim) -> Reservation:
        """Return what a claim has committed."""
        expense = claim.expense
        return cls(expense.dollars, expense.day, expense.client, claim.name)


class Spending(Struct, frozen=True):
    """A budget, and what is committed of it."""

    cap: Cap
    committed: float

    @property
    def left(self) -> float:
        """What can still be committed."""
        return max(0.0, self.cap.limit - self.committed)


class OverBudget(Refusal):
    """There is not enough left of a budget."""

    def __init__(self, spending: Spending) -> None:
        super().__init__()
        self.spending = spending


class Budget:
    """All budgets there are."""

    def __init__(
        self, store: UsageStore, clock: Clock, limits: BudgetLimits, shared: SharedLedger | None = None
    ) -> None:
        self._store = store
        self._shared = shared
        """What counts in the place of the file, where there are other replicas."""
        store.add_source(self)
        self._clock = clock
        self._limits = limits
        self._corrections: dict[tuple[str, str], float] = {}
        """By day and client, what is to be added to the money that is committed."""
        self.is_set = limits != BudgetLimits()
        """Whether money is limited at all."""
        self.latest: dict[str, Spending] = {}
        """What everybody has left of each budget, by its period, when it was last looked at."""
        self._told: dict[tuple[str, str | None, str], float] = {}
        """By setting, client and first day, the highest share that was told as an event."""

    def caps(self, client: str) -> list[Cap]:
        """Return every limit that a call of a client has to stay under."""
        everybody = self._limits.everybody
        own = self._limits.clients.get(client)
        setting = "MERCURY_CLIENT_BUDGETS" if own else "MERCURY_CLIENT_BUDGET_USD"
        monthly = "MERCURY_CLIENT_BUDGETS" if own else "MERCURY_CLIENT_MONTH_BUDGET_USD"
        each = own or self._limits.each_client
        found = (
            (everybody.day, "MERCURY_BUDGET_USD", False, None),
            (everybody.month, "MERCURY_MONTH_BUDGET_USD", True, None),
            (each.day, setting, False, client),
            (each.month, monthly, True, client),
        )
        return [
            Cap(limit, name, is_monthly, whose)
            for limit, name, is_monthly, whose in found
            if limit is not None
        ]

    async def reserve(self, client: str, amount: float | None) -> Reservation | None:
        """Commit money of this machine; raises where too little is left, or nobody knows the price.

        Where replicas share it, `claim` says what to ask for.
        """
        caps = self._caps_for(client, amount)
        if not caps or amount is None:
            return None
        reservation = Reservation(amount, self._store.today, client)
        writing = self._store.submit(partial(_reserve, reservation=reservation, caps=caps))
        try:
            self._note(reservation.day, await asyncio.shield(writing))
        except OverBudget as over:
            raise self._refuse(reservation, over.spending) from None
        except asyncio.CancelledError:  # the writing goes on; what it commits is nobody's
            writing.add_done_callback(lambda done: self._give_back(done, reservation))
            raise
        return reservation

    def _caps_for(self, client: str, amount: float | None) -> list[Cap]:
        caps = self.caps(client) if self.is_set else []
        if caps and amount is None:
            message = "There is a budget, and the price of this model is not known."
            raise MercuryError("PRICE_UNKNOWN", message)
        return caps

    def claim(self, client: str, amount: float | None) -> MoneyClaim | None:
        """Return what a request needs of the money that replicas share; None where it is not limited."""
        caps = self._caps_for(client, amount)
        if self._shared is None or not caps or amount is None:
            return None
        from bridgehead.runtime.stores.ledger import Expense, MoneyClaim

        reservation = Reservation(amount, self._store.today, client)
        by_counter = {_counter(cap, reservation.day): cap for cap in caps}
        limits = {counter: cap.limit for counter, cap in by_counter.items()}
        judge = partial(self._judge, reservation, by_counter)
        return MoneyClaim(self._shared, Expense(reservation.day, client, amount, limits), judge)

    def _judge(self, reservation: Reservation, caps: dict[Counter, Cap], found: Committed) -> None:
        """Keep what replicas have committed; raises where a reservation is not a part of it."""
        if found.exceeded is not None:
            spending = Spending(caps[found.exceeded], found.dollars[found.exceeded])
            raise self._refuse(reservation, spending)
        self._note(reservation.day, [Spending(cap, found.dollars[c]) for c, cap in caps.items()])

    def _refuse(self, reservation: Reservation, spending: Spending) -> MercuryError:
        self._tell(reservation.day, spending, REFUSED)
        return self._exceeded(reservation.amount, spending)

    def settle(self, reservation: Reservation | None, spent: float | None) -> None:
        """Put what a request cost in the place of what was committed; None keeps it: nobody can know."""
        if reservation is None or spent is None:
            return
        if self._shared is not None:
            self._shared.settle(reservation.name, reservation.day, reservation.client, spent)
            return
        key = (reservation.day, reservation.client)
        self._corrections[key] = self._corrections.get(key, 0.0) + spent - reservation.amount
        self._store.write_soon()

    def _give_back(self, writing: asyncio.Future[list[Spending]], reservation: Reservation) -> None:
        if not writing.cancelled() and writing.exception() is None:
            self.settle(reservation, 0.0)

    async def spending(self, client: str) -> tuple[str, list[Spending]]:
        """Return today, and what is committed of each budget of a client; raises `StorageError`."""
        today, caps = self._store.today, self.caps(client)
        if not caps:
            return today, []
        if self._shared is not None:
            counters = [_counter(cap, today) for cap in caps]
            committed = await self._shared.look(tuple(dict.fromkeys(counters)))
            found = [Spending(cap, committed[one]) for cap, one in zip(caps, counters, strict=True)]
        else:
            found = await self._store.submit(partial(_spending, today=today, caps=caps))
        self._note(today, found)
        return today, found

    async def check(self) -> None:
        """Look at everybody's budgets, so that what is known of them is not older than the last look."""
        if self.is_set:
            with suppress(StorageError):  # whoever calls hears of it
                await self.spending("")

    def _note(self, today: str, found: list[Spending]) -> None:
        """Keep what is left, and tell of each share of a budget once it is reached."""
        for spending in found:
            if spending.cap.client is None:
                self.latest[spending.cap.period] = spending
            reached = [share for share in SHARES if spending.committed >= share * spending.cap.limit]
            if reached:
                self._tell(today, spending, reached[-1])

    def _tell(self, today: str, spending: Spending, share: float) -> None:
        cap = spending.cap
        key = (cap.setting, cap.client, cap.first_day(today))
        if self._told.get(key, 0.0) >= share:
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[key] = share
        events.publish(
            "budget.refused" if share == REFUSED else "budget.threshold",
            bridge="mercury",
            period=cap.period,
            client=cap.client,
            percent=round(100 * spending.committed / cap.limit, 1) if cap.limit else 100.0,
            limit_usd=cap.limit,
            left_usd=round(spending.left, 6),
        )

    def take(self) -> tuple[Work[None], Callable[[], None]] | None:
        """Hand the corrections over that are not written yet."""
        if not self._corrections:
            return None
        taken, self._corrections = self._corrections, {}

        def write(connection: sqlite3.Connection) -> None:
            for (day, client), amount in taken.items():
                commit_money(connection, day, client, amount)

        def restore() -> None:
            for key, amount in taken.items():
                self._corrections[key] = self._corrections.get(key, 0.0) + amount

        return write, restore

    def _exceeded(self, amount: float, spending: Spending) -> MercuryError:
        cap = spending.cap
        return MercuryError(
            "BUDGET_EXCEEDED",
            f"{cap.name} of ${cap.limit:g} has ${spending.left:.6f} left; this call can cost ${amount:.6f}.",
            retry_after=round(cap.seconds_left(self._clock.now())),
            next_step=f"Ask for less (smaller max_tokens, a cheaper model), raise {cap.setting}, or wait for "
            f"the next UTC {'month' if cap.is_monthly else 'day'}.",
        )


def _counter(cap: Cap, day: str) -> Counter:
    from bridgehead.runtime.stores.ledger import EVERYBODY, Counter

    return Counter(day[:7] if cap.is_monthly else day, cap.client or EVERYBODY)


def _reserve(connection: sqlite3.Connection, reservation: Reservation, caps: list[Cap]) -> list[Spending]:
    """Commit the money; returns what was committed before."""
    before = _spending(connection, reservation.day, caps)
    for spending in before:
        if spending.committed + reservation.amount > spending.cap.limit:
            raise OverBudget(spending)
    commit_money(connection, reservation.day, reservation.client, reservation.amount)
    return before


def _spending(connection: sqlite3.Connection, today: str, caps: list[Cap]) -> list[Spending]:
    return [
        Spending(cap, committed_money(connection, cap.first_day(today), today, cap.client)) for cap in caps
    ]


def commit_money(connection: sqlite3.Connection, day: str, client: str, amount: float) -> None:
    """Add to the money that a client has committed on a day, or take from it."""
    name = counted_client(connection, day, client)
    connection.execute(
        "INSERT INTO spending VALUES (?, ?, max(0, ?)) ON CONFLICT DO UPDATE "
        "SET committed_usd = max(0, round(committed_usd + ?, 12))",
        (day, name, amount, amount),
    )


def committed_money(
    connection: sqlite3.Connection, first_day: str, last_day: str, client: str | None = None
) -> float:
    """Return what is committed from one day to another, by one client or by everybody."""
    found = connection.execute(
        "SELECT total(committed_usd) FROM spending "
        "WHERE day BETWEEN ?1 AND ?2 AND (?3 IS NULL OR client = ?3)",
        (first_day, last_day, client and counted_client(connection, last_day, client)),
    ).fetchone()
    return round(float(found[0]), 12)
