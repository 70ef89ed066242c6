"""Accounts: what calls use and cost, since the start and today, and the budget that stops them.

Counting is done in memory and written to the day's ledger a little later. A budget is different: a request's
worst case is written down before it goes out, and corrected after, so that the day's total of all processes
never passes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.clock import Clock
from bridgehead.runtime.errors import StorageError

from .errors import MercuryError
from .ledger import Day, Ledger, OverBudget, day_of, seconds_to_midnight
from .tally import Tally

WRITE_SECONDS = 2.0
"""How long totals may wait before they are written."""

_log = logs.logger("mercury.accounts")


class Reservation(Struct):
    """Money held for one request, on one day."""

    amount: float
    day: str


class Accounts:
    """The totals of this process, and its part in the day's."""

    def __init__(self, open_ledger: Callable[[], Ledger], clock: Clock, budget: float | None) -> None:
        self._open_ledger = open_ledger
        self._ledger: Ledger | None = None
        self._clock = clock
        self.budget = budget
        self._models: dict[str, Tally] = {}
        self._unwritten: dict[str, Tally] = {}
        self._hits: dict[str, int] = {}
        """Answers from the cache by model that are in neither of the two yet."""
        self._owed = 0.0
        """Corrections of the day's money that are not written yet."""
        self._day = Day(day_of(clock.now()))
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    # --- counting ------------------------------------------------------------------------------------------

    @property
    def models(self) -> dict[str, Tally]:
        """By model, since the start."""
        self._count_hits()
        return self._models

    def count(self, model: str, tally: Tally) -> None:
        """Add what a call used."""
        for totals in (self._models, self._unwritten):
            self._of(totals, model).add(tally)
        self._write_soon()

    def count_hit(self, model: str) -> None:
        """Add a call that was answered from the cache."""
        self._hits[model] = self._hits.get(model, 0) + 1
        if self._timer is None:
            self._write_soon()

    def _count_hits(self) -> None:
        hits, self._hits = self._hits, {}
        for model, count in hits.items():
            self.count(model, Tally(calls=count, cache_hits=count))

    @staticmethod
    def _of(totals: dict[str, Tally], model: str) -> Tally:
        found = totals.get(model)
        if found is None:
            found = totals[model] = Tally()
        return found

    async def today(self) -> Day:
        """Give the totals of today, of all processes of this user."""
        try:
            await self._write()
        except StorageError as error:
            _log.warn("usage not written", reason=str(error))
            return Day(day_of(self._clock.now()), models=self.models)
        return self._day

    # --- money ---------------------------------------------------------------------------------------------

    async def reserve(self, amount: float | None) -> Reservation | None:
        """Hold money for a request; raises where too little is left, or nobody knows the price."""
        if self.budget is None:
            return None
        if amount is None:
            message = "There is a budget, and the price of this model is not known."
            raise MercuryError("PRICE_UNKNOWN", message)
        try:
            await self._write(amount, self.budget)
        except OverBudget as over:
            raise self._exceeded(amount, over.left) from None
        return Reservation(amount, self._day.day)

    def settle(self, reservation: Reservation | None, spent: float | None) -> None:
        """Put what a request cost in the place of what was held; None keeps it, since nobody can know."""
        if reservation is None or spent is None:
            return
        if reservation.day == day_of(self._clock.now()):  # yesterday's is no part of today's total
            self._owed += spent - reservation.amount
            self._write_soon()

    def _exceeded(self, amount: float, left: float) -> MercuryError:
        return MercuryError(
            "BUDGET_EXCEEDED",
            f"The day's budget of ${self.budget:g} has ${left:.6f} left; this call can cost ${amount:.6f}.",
            retry_after=round(seconds_to_midnight(self._clock.now())),
        )

    # --- writing -------------------------------------------------------------------------------------------

    def _write_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_SECONDS, self._begin_writing)

    def _begin_writing(self) -> None:
        self._timer = None
        self._task = asyncio.create_task(self._write_quietly())

    async def _write_quietly(self) -> None:
        try:
            await self._write()
        except StorageError as error:
            _log.warn("usage not written", reason=str(error))

    async def _write(self, amount: float = 0.0, budget: float | None = None) -> None:
        """Write what waits, and with it a reservation; a call that is cancelled does not stop it half-way."""
        writing = asyncio.create_task(self._write_all(amount, budget))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            writing.add_done_callback(lambda done: self._withdraw(done, amount))
            raise

    def _withdraw(self, writing: asyncio.Task[None], amount: float) -> None:
        """Give back what was reserved for a call that is gone."""
        if not writing.cancelled() and writing.exception() is None:
            self._owed -= amount
            self._write_soon()

    async def _write_all(self, amount: float, budget: float | None) -> None:
        """Write; where it fails, what waited goes on waiting."""
        async with self._writing:
            self._count_hits()
            owed, tallies = self._owed, self._unwritten
            self._owed, self._unwritten = 0.0, {}
            if self._day.day != day_of(self._clock.now()):
                owed = max(0.0, owed)  # what was held yesterday is no part of today's total
            try:
                self._day = await asyncio.to_thread(self._commit, owed + amount, tallies, budget)
            except (StorageError, OverBudget):
                self._owed += owed
                for model, tally in self._unwritten.items():
                    tallies.setdefault(model, Tally()).add(tally)
                self._unwritten = tallies
                raise

    def _commit(self, amount: float, tallies: dict[str, Tally], budget: float | None) -> Day:
        if self._ledger is None:
            self._ledger = self._open_ledger()
        return self._ledger.commit(amount, tallies, budget)

    async def close(self) -> None:
        """Write what is left."""
        if self._timer is not None:
            self._timer.cancel()
        if self._owed or self._unwritten or self._hits:
            await self._write_quietly()
