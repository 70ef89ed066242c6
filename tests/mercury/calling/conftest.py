"""Fixtures of the calling code: a budget over every kind of books."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from bridgehead.commands import db
from bridgehead.mercury.calling.budget import Amounts, BudgetLimits
from tests.mercury.calling.books import NO_LIMIT, NOON, OpenBooks, Payer, open_postgres, open_sqlite
from tests.support.clock import Clock

Open = Callable[..., AbstractAsyncContextManager[Payer]]


@pytest.fixture(params=["sqlite", "postgresql"])
def open_books(request: pytest.FixtureRequest, tmp_path: Path) -> OpenBooks:
    """Opens the same books each time: one version for one machine, one for all replicas."""
    if request.param == "sqlite":
        return partial(open_sqlite, tmp_path)
    url = request.getfixturevalue("database_url")
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})
    return lambda _clock: open_postgres(url)


@pytest.fixture
def budgeted(open_books: OpenBooks) -> Open:
    """Opens a budget with the limits that a test wants."""

    @asynccontextmanager
    async def open_budget(
        everybody: Amounts = NO_LIMIT,
        each_client: Amounts = NO_LIMIT,
        clients: dict[str, Amounts] | None = None,
    ) -> AsyncIterator[Payer]:
        clock = Clock(NOON)
        async with open_books(clock) as books:
            yield Payer(books, clock, BudgetLimits(everybody, each_client, clients or {}))

    return open_budget
