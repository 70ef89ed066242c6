"""Budget: money is committed for a request's worst case before it goes out, and corrected after.

So the total of all processes never passes the budget. Committed money counts as spent until it is settled: a
process that dies in between leaves the total too high, and never too low.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from bridgehead.runtime.timing import Clock

from ..errors import MercuryError
from .usage_store import Refusal, UsageStore, Work, counted_client

_DAY_SECONDS = 86_400


class Reservation(Struct, frozen=True):
    """Money committed for one request, on one day."""

    amount: float
    day: str
    client: str


class OverBudget(Refusal):
    """There is not enough left of the budget."""

    def __init__(self, left: float) -> None:
        super().__init__()
        self.left = left


class Budget:
    """The day's budget, if there is one."""

    def __init__(self, store: UsageStore, clock: Clock, limit: float | None) -> None:
        self._store = store
        store.add_source(self)
        self._clock = clock
        self.limit = limit
        self._corrections: dict[tuple[str, str], float] = {}
        """By day and client, what is to be added to the money that is committed."""

    @property
    def is_set(self) -> bool:
        """Tell whether money is limited."""
        return self.limit is not None

    async def reserve(self, client: str, amount: float | None) -> Reservation | None:
        """Commit money for a request; raises where too little is left, or nobody knows the price."""
        if self.limit is None:
            return None
        if amount is None:
            message = "There is a budget, and the price of this model is not known."
            raise MercuryError("PRICE_UNKNOWN", message)
        reservation = Reservation(amount, self._store.today, client)
        writing = self._store.submit(partial(_reserve, reservation=reservation, limit=self.limit))
        try:
            await asyncio.shield(writing)
        except OverBudget as over:
            raise self._exceeded(amount, over.left) from None
        except asyncio.CancelledError:  # the writing goes on; what it commits is nobody's
            writing.add_done_callback(lambda done: self._give_back(done, reservation))
            raise
        return reservation

    def settle(self, reservation: Reservation | None, spent: float | None) -> None:
        """Put what a request cost in the place of what was committed; None keeps it: nobody can know."""
        if reservation is None or spent is None:
            return
        key = (reservation.day, reservation.client)
        self._corrections[key] = self._corrections.get(key, 0.0) + spent - reservation.amount
        self._store.write_soon()

    def _give_back(self, writing: asyncio.Future[None], reservation: Reservation) -> None:
        if not writing.cancelled() and writing.exception() is None:
            self.settle(reservation, 0.0)

    async def committed_today(self) -> tuple[str, float]:
        """Return the day and the money that is committed on it; raises `StorageError`."""
        day = self._store.today
        return day, await self._store.submit(partial(committed_money, day=day))

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

    def _exceeded(self, amount: float, left: float) -> MercuryError:
        return MercuryError(
            "BUDGET_EXCEEDED",
            f"The day's budget of ${self.limit:g} has ${left:.6f} left; this call can cost ${amount:.6f}.",
            retry_after=round(_DAY_SECONDS - self._clock.now() % _DAY_SECONDS),
        )


def _reserve(connection: sqlite3.Connection, reservation: Reservation, limit: float) -> None:
    committed = committed_money(connection, reservation.day)
    if committed + reservation.amount > limit:
        raise OverBudget(max(0.0, limit - committed))
    commit_money(connection, reservation.day, reservation.client, reservation.amount)


def commit_money(connection: sqlite3.Connection, day: str, client: str, amount: float) -> None:
    """Add to the money that a client has committed on a day, or take from it."""
    name = counted_client(connection, day, client)
    connection.execute(
        "INSERT INTO spending VALUES (?, ?, max(0, ?)) ON CONFLICT DO UPDATE "
        "SET committed_usd = max(0, round(committed_usd + ?, 12))",
        (day, name, amount, amount),
    )


def committed_money(connection: sqlite3.Connection, day: str) -> float:
    """Return what is committed on a day."""
    found = connection.execute("SELECT total(committed_usd) FROM spending WHERE day = ?", (day,)).fetchone()
    return round(float(found[0]), 12)
