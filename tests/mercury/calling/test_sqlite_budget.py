"""The books in SQLite: taken over from version 1, released by the payer, and refused if they are damaged."""

import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from bridgehead.mercury.calling.budget import Amounts, BudgetLimits, ReleasedSends, Reservation
from bridgehead.mercury.calling.sqlite_budget import release_uncertain
from bridgehead.mercury.calling.sqlite_usage import FILE, open_database
from bridgehead.mercury.calling.usage import Span
from bridgehead.mercury.errors import MercuryError
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import sqlite
from tests.mercury.calling.books import DAY, NOON, Payer, open_sqlite
from tests.mercury.calling.test_sqlite_usage import make_payer, open_store
from tests.support.clock import Clock
from tests.support.waiting import until

TODAY = "2026-09-21"
EVER = Span("2020-01-01", "2030-01-01")


async def test_what_version_1_had_committed_still_counts(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as old:
        old.execute("CREATE TABLE spending (day TEXT, client TEXT, committed_usd REAL)")
        rows = [("2026-09-20", "ada", 0.5), (TODAY, "ada", 0.25), (TODAY, "bob", 0.125)]
        old.executemany("INSERT INTO spending VALUES (?, ?, ?)", rows)
        old.execute("PRAGMA user_version=1")
        old.commit()
    clock = Clock(NOON)
    async with open_sqlite(tmp_path, clock) as books:
        payer = Payer(books, clock, BudgetLimits(Amounts(1.0, 2.0), Amounts(1.0, 2.0)))
        spendings = (await payer.budget.spending("ada"))[1]

    assert [(one.cap.period, one.committed) for one in spendings] == [
        ("day", 0.375),
        ("month", 0.875),
        ("day", 0.25),
        ("month", 0.75),
    ]


async def test_the_payer_releases_what_is_uncertain_and_nothing_else(tmp_path: Path) -> None:
    clock, limits = Clock(NOON), BudgetLimits(Amounts(1.0))
    async with open_sqlite(tmp_path, clock) as books:
        payer = Payer(books, clock, limits)
        late = payer.end(await payer.reserve("me", 0.25), "uncertain")
        await payer.reserve("me", 0.125)
        payer.end(await payer.reserve("me", 0.5), "settled", 0.0625)
        await payer.committed()
        with closing(open_database(tmp_path / FILE)) as other, sqlite.transaction(other):
            released = release_uncertain(other, EVER)
            again = release_uncertain(other, EVER)
        after_release = await payer.amounts()
        payer.end(late, "settled", 0.2)
        after_settlement = await payer.amounts()

    assert released == [ReleasedSends(TODAY, "mercury-2", "me's editor", 1, 0.25)]
    assert again == []
    assert after_release == (0.0625, 0.0, 0.125)
    assert after_settlement == (0.2625, 0.0, 0.125), "a late settlement is charged in full"


async def test_a_file_that_is_no_database_reserves_nothing_and_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{ not a database, and long enough to be looked at } " * 20)
    clock = Clock(NOON)
    async with open_sqlite(tmp_path, clock) as books:
        payer = Payer(books, clock, BudgetLimits(Amounts(1.0)))
        with pytest.raises(StorageError, match=FILE):
            await payer.reserve("me", 0.5)


async def test_a_send_that_costs_nothing_commits_nothing(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_sqlite(tmp_path, clock) as books:
        payer = Payer(books, clock, BudgetLimits(Amounts(0.5)))
        await payer.reserve("me", 0.0)

        assert await payer.amounts() == (0.0, 0.0, 0.0)


async def test_an_uncertain_send_of_unknown_price_is_counted_without_money(tmp_path: Path) -> None:
    clock = Clock(NOON)
    unpriced = Reservation(day=TODAY, payer="me", model="mercury-2", client="editor", seconds=60.0)
    async with open_sqlite(tmp_path, clock) as books:
        Payer(books, clock, BudgetLimits()).end(unpriced, "uncertain")
        await books.spending(TODAY, [])  # behind it in the same queue
        with closing(open_database(tmp_path / FILE)) as other, sqlite.transaction(other):
            released = release_uncertain(other, EVER)

    assert released == [ReleasedSends(TODAY, "mercury-2", "editor", 1, 0.0)]


async def test_an_end_that_cannot_be_booked_is_logged_and_one_that_can_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(NOON)
    async with open_sqlite(tmp_path, clock) as books:
        payer = Payer(books, clock, BudgetLimits(Amounts(1.0)))
        booked, lost = await payer.reserve("me", 0.25), await payer.reserve("me", 0.125)
        payer.end(booked, "settled", 0.25)
        await payer.amounts()
        assert caplog.records == []

        with closing(open_database(tmp_path / FILE)) as other:
            other.execute("DROP TABLE sends")
        payer.end(lost, "settled", 0.125)
        with pytest.raises(StorageError):
            await payer.amounts()

    told = sorted(record.getMessage() for record in caplog.records)
    assert told == ["the end of a send was not booked", "the usage database cannot be used"]


@pytest.mark.parametrize(("ahead", "is_refused"), [(1, True), (2, True), (3, False), (400, False)])
async def test_a_clock_that_went_back_opens_no_day_again_and_one_that_was_wrong_locks_none(
    tmp_path: Path, ahead: int, *, is_refused: bool
) -> None:
    later = Clock(NOON + ahead * DAY)
    async with open_store(tmp_path, later) as store:
        payer = make_payer(store, later, 1.0)
        payer.end(await payer.reserve("me", 0.9), "settled", 0.9)

    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        payer = make_payer(store, clock, 1.0)
        with pytest.raises(MercuryError, match="budget") if is_refused else nullcontext():
            await payer.reserve("me", 0.9)


async def test_the_end_of_a_send_rides_with_the_next_reservation(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        payer = make_payer(store, clock, 10.0)
        reservation = await payer.reserve("me", 1.0)
        payer.end(reservation, "settled", 0.5)
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            before = connection.execute("SELECT count(*) FROM sends").fetchone()
            await payer.reserve("me", 1.0)
            after = connection.execute("SELECT count(*) FROM sends").fetchone()

    assert (before, after) == ((1,), (1,))  # one ended, one began


async def test_an_end_that_nothing_follows_is_booked_by_itself(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        payer = make_payer(store, clock, 10.0)
        payer.end(await payer.reserve("me", 1.0), "settled", 0.5)
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            await until(lambda: connection.execute("SELECT count(*) FROM sends").fetchone() == (0,))
