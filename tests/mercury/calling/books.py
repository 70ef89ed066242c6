"""The books of a budget for tests: in SQLite and in PostgreSQL, with reservations as a send makes them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits, BudgetStore, Reservation, State
from bridgehead.mercury.calling.postgres_budget import PostgresBudget
from bridgehead.mercury.calling.sqlite_budget import SqliteBudget
from bridgehead.mercury.calling.sqlite_usage import SqliteUsage
from bridgehead.mercury.calling.usage import utc_day
from tests.support.clock import Clock

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200
DAY = 86_400.0
NO_LIMIT = Amounts()
NOT_SOON = 3600.0
OpenBooks = Callable[[Clock], AbstractAsyncContextManager[BudgetStore]]


@asynccontextmanager
async def open_sqlite(folder: Path, clock: Clock) -> AsyncIterator[BudgetStore]:
    """Open the books of one machine."""
    store = SqliteUsage(lambda: folder, clock, keep_days=400)
    try:
        yield SqliteBudget(store)
    finally:
        await store.close()


@asynccontextmanager
async def open_postgres(url: str) -> AsyncIterator[BudgetStore]:
    """Open the books of all replicas."""
    books = PostgresBudget(url)
    try:
        yield books
    finally:
        await books.close()


class Payer:
    """Reserves and ends sends of one budget, as calls do."""

    def __init__(self, books: BudgetStore, clock: Clock, limits: BudgetLimits) -> None:
        self.budget = Budget(books, clock, limits)
        self.clock = clock

    async def reserve(self, payer: str, usd: float, seconds: float = NOT_SOON) -> Reservation:
        """Reserve a send."""
        reservation = Reservation(
            day=utc_day(self.clock.now()),
            payer=payer,
            model="mercury-2",
            client=f"{payer}'s editor",
            seconds=seconds,
            worst_usd=usd,
        )
        await self.budget.reserve(reservation)
        return reservation

    def end(self, reservation: Reservation, state: State, usd: float | None = None) -> Reservation:
        """End a send; the books have a copy, so that a test can end it twice."""
        ended = replace(reservation, state=state, settled_usd=usd)
        self.budget.finish(ended)
        return ended

    async def amounts(self, payer: str = "me") -> tuple[float, float, float]:
        """Return what is settled, uncertain and reserved under the first cap."""
        spending = (await self.budget.spending(payer))[1][0]
        return spending.settled, spending.uncertain, spending.reserved

    async def committed(self, payer: str = "me") -> float:
        """Return what is committed under the first cap."""
        return (await self.budget.spending(payer))[1][0].committed
