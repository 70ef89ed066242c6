"""Budgets: what reserving a send and booking its end take, in SQLite and in PostgreSQL; both flush commits.

    python -m bench.scale.budgets

`reserve` is what a paid call waits for before it is sent. The end is booked in the background; `reserve and
book` waits for both, one send after the other.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.scale.records import DURABLE
from bench.table import draw
from bridgehead.commands import db
from bridgehead.mercury.calling.budget import Amounts, BudgetLimits, BudgetStore
from tests.mercury.calling.books import Payer, open_postgres, open_sqlite
from tests.support.clock import Clock
from tests.support.postgres_server import running

ROUNDS = 300
CALLERS = 32
LIMITS = BudgetLimits(Amounts(1e6, 1e6), Amounts(1e6, 1e6))


async def measure(books: BudgetStore) -> list[str]:
    """Return the median of a reservation, of one with its end, and sends a second of many callers."""
    payer = Payer(books, Clock(), LIMITS)
    reserving, both = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        reservation = await payer.reserve("me", 0.01)
        reserving.append(time.perf_counter() - begin)
        payer.end(reservation, "settled", 0.005)
        await payer.committed()
        both.append(time.perf_counter() - begin)

    async def call() -> None:
        for _ in range(ROUNDS // 10):
            payer.end(await payer.reserve("me", 0.01), "settled", 0.005)

    begin = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(CALLERS)))
    await payer.committed()
    rate = CALLERS * (ROUNDS // 10) / (time.perf_counter() - begin)
    return [f"{1000 * median(reserving):.2f} ms", f"{1000 * median(both):.2f} ms", f"{rate:,.0f}"]


async def in_sqlite() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite(Path(folder), Clock()) as books:
            return ["SQLite", *await measure(books)]


async def in_postgres(url: str) -> list[str]:
    async with open_postgres(url) as books:
        return ["PostgreSQL", *await measure(books)]


def lines() -> list[list[str]]:
    """Measure both."""
    with running(**DURABLE) as server:
        db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": server.url})
        return [asyncio.run(in_sqlite()), asyncio.run(in_postgres(server.url))]


if __name__ == "__main__":
    head = ["books", "reserve", "reserve and book", f"sends a second, {CALLERS} callers"]
    print(draw([head, *lines()]))
