"""The books in PostgreSQL: through outages, lost answers and a bouncer, each send is booked once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.commands import db
from bridgehead.mercury.calling import postgres_budget
from bridgehead.mercury.calling.budget import Amounts, BudgetLimits, ReleasedSends, Reservation, Spending
from bridgehead.mercury.calling.postgres_budget import PostgresBudget, release_uncertain
from bridgehead.mercury.calling.postgres_usage import read_schema
from bridgehead.mercury.calling.usage import Span
from bridgehead.mercury.errors import MercuryError
from bridgehead.runtime.errors import BridgeError, Unavailable
from bridgehead.runtime.stores import migrations, postgres
from tests.mercury.calling.books import NOON, Payer, open_postgres
from tests.support.clock import Clock
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer
from tests.support.proxy import proxied
from tests.support.waiting import PATIENCE, until

EVER = Span("2020-01-01", "2030-01-01")
LIMITS = BudgetLimits(Amounts(1.0, 5.0), Amounts(0.9))


async def migrate(url: str) -> None:
    await asyncio.to_thread(db.main, ["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})


@asynccontextmanager
async def paying(url: str) -> AsyncIterator[Payer]:
    async with open_postgres(url) as books:
        yield Payer(books, Clock(NOON), LIMITS)


async def test_behind_a_bouncer_in_transaction_mode_a_budget_holds_as_well(pooled_url: str) -> None:
    await migrate(pooled_url)
    async with paying(pooled_url) as one, paying(pooled_url) as other:

        async def spend(number: int) -> int:
            payer = (one, other)[number % 2]
            try:
                payer.end(await payer.reserve(f"client-{number % 2}", 0.07), "uncertain")
            except MercuryError:
                return 0
            return 1

        sends = sum(await asyncio.gather(*(spend(number) for number in range(40))))

        assert sends == 14
        assert await one.amounts() == pytest.approx((0.0, 0.98, 0.0))
        assert await other.amounts() == pytest.approx((0.0, 0.98, 0.0))


async def test_a_reservation_whose_answer_is_lost_is_booked_once(
    database_url: str, postgres_server: PostgresServer
) -> None:
    await migrate(database_url)
    async with proxied(postgres_server.port) as proxy:
        url = proxy.through(database_url)
        async with paying(url) as payer:
            await payer.reserve("me", 0.125)
            proxy.cut_answer_to = lambda data: b"me's editor" in data
            reservation = await payer.reserve("me", 0.25)
            amounts = await payer.amounts()
            proxy.cut_answer_to = lambda data: b"settled" in data
            payer.end(reservation, "settled", 0.0625)
            settled = await payer.amounts()

    assert proxy.cuts == 2
    assert amounts == (0.0, 0.0, 0.375)
    assert settled == (0.0625, 0.0, 0.125)


async def test_while_the_database_is_gone_nothing_is_sent_and_ends_are_booked_when_it_is_back(
    breakable_postgres: PostgresServer,
) -> None:
    await migrate(breakable_postgres.url)
    async with paying(breakable_postgres.url) as payer:
        reservation = await payer.reserve("me", 0.5)
        breakable_postgres.kill()
        payer.end(reservation, "settled", 0.25)
        with pytest.raises(BridgeError, match="database"):
            await payer.reserve("me", 0.25)
        await asyncio.to_thread(breakable_postgres.start)
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    if await payer.amounts() == (0.25, 0.0, 0.0):
                        break
                except BridgeError:
                    pass
                await asyncio.sleep(0.05)


async def test_looking_at_the_budget_while_the_database_is_gone_fails_nobody() -> None:
    async with paying(f"postgresql://127.0.0.1:{free_port()}/none") as payer:
        await payer.budget.check()

        assert payer.budget.left() == {}
        with pytest.raises(BridgeError, match="database"):
            await payer.budget.spending("")


async def test_the_payer_releases_what_is_uncertain_and_a_late_settlement_is_charged_in_full(
    database_url: str,
) -> None:
    await migrate(database_url)
    async with paying(database_url) as payer:
        late = payer.end(await payer.reserve("me", 0.25), "uncertain")
        await payer.reserve("me", 0.125)
        payer.end(await payer.reserve("me", 0.5), "settled", 0.0625)
        await payer.committed()
        database = await postgres.acquire(database_url)
        try:
            released = await database.writer.run(lambda held: release_uncertain(held, EVER))
            again = await database.writer.run(lambda held: release_uncertain(held, EVER))
        finally:
            await postgres.release(database)
        after_release = await payer.amounts()
        payer.end(late, "settled", 0.2)

        assert released == [ReleasedSends("2026-09-21", "mercury-2", "me's editor", 1, 0.25)]
        assert again == []
        assert after_release == (0.0625, 0.0, 0.125)
        assert await payer.amounts() == pytest.approx((0.2625, 0.0, 0.125))


async def test_what_version_2_had_handed_out_still_counts(database_url: str) -> None:
    database = await postgres.acquire(database_url)
    try:
        await database.writer.run(lambda held: migrations.migrate(held, [read_schema()], upto=2))
        await database.writer.run(
            lambda held: held.execute(
                "insert into mercury_allotments values "
                "('2026-09-21', '', 250000, 0, 0), ('2026-09', '', 500000, 0, 0)"
            )
        )
    finally:
        await postgres.release(database)
    await migrate(database_url)
    async with paying(database_url) as payer:
        day, month, _ = (await payer.budget.spending("me"))[1]

    assert (day.committed, month.committed) == (0.25, 0.5)


async def test_ends_that_wait_for_the_database_are_bounded(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(database_url)
    monkeypatch.setattr(postgres_budget, "MAX_UNBOOKED", 2)
    async with paying(database_url) as payer:
        reservations = [await payer.reserve("me", 0.125, seconds=0.0) for _ in range(3)]
        for reservation in reservations:
            payer.end(reservation, "released")

        assert await payer.amounts() == (0.0, 0.125, 0.0), "what is not booked becomes uncertain"


async def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    database = await postgres.acquire(url)
    try:
        return [tuple(row) for row in await database.writer.run(lambda held: held.fetch(statement))]
    finally:
        await postgres.release(database)


async def test_a_reservation_that_was_stored_and_given_up_is_released(
    database_url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(database_url)
    monkeypatch.setattr(postgres_budget, "RECONNECT_SECONDS", -1.0)  # given up at the first failure
    async with proxied(postgres_server.port) as proxy, paying(proxy.through(database_url)) as payer:
        await payer.reserve("me", 0.125)
        proxy.cut_answer_to = lambda data: b"me's editor" in data
        with pytest.raises(BridgeError, match="database"):
            await payer.reserve("me", 0.25)
        proxy.cut_answer_to = lambda _: False

        assert proxy.cuts == 1
        assert await payer.amounts() == (0.0, 0.0, 0.125)
        assert await execute(database_url, "select count(*) from mercury_sends where state = 'open'") == [
            (1,)
        ]


async def test_books_that_somebody_emptied_are_opened_again_and_the_call_is_refused_once(
    database_url: str,
) -> None:
    await migrate(database_url)
    async with paying(database_url) as payer:
        await payer.reserve("me", 0.5)
        await execute(database_url, "delete from mercury_budget")
        with pytest.raises(BridgeError, match="The books of the budget have changed"):
            await payer.reserve("me", 0.25)
        await payer.reserve("me", 0.25)

        assert await payer.committed() == 0.25


async def test_what_was_spent_before_a_month_had_a_limit_counts_when_it_has_one(database_url: str) -> None:
    await migrate(database_url)
    async with open_postgres(database_url) as books:
        await Payer(books, Clock(NOON), BudgetLimits(Amounts(1.0))).reserve("me", 0.25)
        spendings = (await Payer(books, Clock(NOON), LIMITS).budget.spending("me"))[1]

    assert [spending.committed for spending in spendings] == [0.25, 0.25, 0.25]


async def test_an_end_is_booked_before_the_books_close(database_url: str) -> None:
    await migrate(database_url)
    async with paying(database_url) as payer:
        payer.end(await payer.reserve("me", 0.5), "settled", 0.25)
    async with paying(database_url) as payer:
        assert await payer.amounts() == (0.25, 0.0, 0.0)


async def test_settled_sends_are_forgotten_after_an_hour_and_stay_in_the_sum(database_url: str) -> None:
    await migrate(database_url)
    kept: list[tuple[object, ...]] = []
    for _ in range(2):
        async with paying(database_url) as payer:
            payer.end(await payer.reserve("me", 0.5), "settled", 0.25)
            await payer.committed()
        kept = await execute(database_url, "select state from mercury_sends")
        await execute(database_url, "update mercury_sends set reserved_until = now() - interval '2 hours'")

    assert kept == [("settled",)]
    async with paying(database_url) as payer:
        assert await payer.committed() == 0.5


async def test_books_that_cannot_be_reached_say_so_and_let_go_of_their_ends_when_they_close(
    breakable_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_budget, "_CLOSE_SECONDS", 0.01)
    await migrate(breakable_postgres.url)
    books = PostgresBudget(breakable_postgres.url)
    assert books.problem == ""
    payer = Payer(books, Clock(NOON), LIMITS)
    reservation = await payer.reserve("me", 0.5)
    assert books.problem == ""
    breakable_postgres.kill()
    payer.end(reservation, "settled", 0.25)
    await until(lambda: books.problem == "The database is unavailable.")
    await books.close()

    await until(lambda: books._booking is None)  # noqa: SLF001 - otherwise it would try for ever


async def test_uncertain_sends_that_no_budget_booked_are_all_counted_and_one_without_a_price_costs_nothing(
    database_url: str,
) -> None:
    await migrate(database_url)
    async with open_postgres(database_url) as books:
        for usd in (0.25, 0.5, None):  # they have no id, and are booked together
            send = Reservation(
                day="2026-09-21", payer="me", model="m", client="c", seconds=1.0, worst_usd=usd
            )
            send.state = "uncertain"
            books.finish(send)

    kept = await execute(database_url, "select sends, usd::float8 from mercury_sends")
    assert kept == [(3, 0.75)]


async def test_a_reservation_without_a_price_reserves_nothing(database_url: str) -> None:
    await migrate(database_url)
    async with open_postgres(database_url) as books:
        send = Reservation(day="2026-09-21", payer="me", model="m", client="c", seconds=60.0, id="one")
        await books.reserve(send, [])

    kept = await execute(database_url, "select committed_usd::float8, payer from mercury_budget")
    assert {usd for usd, _ in kept} == {0.0}


class Pauses:
    """A backoff that takes no time and notes which pauses were asked for."""

    def __init__(self) -> None:
        self.taken: list[object] = []

    @property
    def base(self) -> float:
        self.taken.append("base")
        return 0.0

    def delay(self, attempt: int, _: object) -> float:
        self.taken.append(attempt)
        return 0.0


async def test_ends_are_tried_until_they_are_booked_with_pauses_and_each_outage_is_logged_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(database_url)
    is_away = iter([True, True, True, True, False, True, False])
    pauses = Pauses()
    said: list[str] = []
    book = PostgresBudget._finish  # noqa: SLF001 - a database that is away and back at just these moments

    async def book_or_fail(books: PostgresBudget, connection: Any, batch: list[Reservation]) -> None:
        if next(is_away):
            raise Unavailable("It is away.", next_step="Wait.")
        await book(books, connection, batch)

    monkeypatch.setattr(PostgresBudget, "_finish", book_or_fail)
    monkeypatch.setattr(postgres_budget, "_MAX_BATCH", 1)
    monkeypatch.setattr(postgres_budget, "_RETRY_BACKOFF", pauses)
    monkeypatch.setattr(postgres_budget, "_log", SimpleNamespace(warn=lambda event, **_: said.append(event)))
    async with paying(database_url) as payer:
        for reservation in [await payer.reserve("me", 0.25) for _ in range(2)]:
            payer.end(reservation, "settled", 0.125)
        amounts = await payer.amounts()

    assert amounts == (0.25, 0.0, 0.0)
    assert said == ["the end of a send is not booked yet"] * 2
    assert pauses.taken == [0, 1, 2, 3, 0], "each outage begins with the shortest pause"


def test_no_outage_is_met_with_tries_without_a_pause() -> None:
    pauses = [postgres_budget._RETRY_BACKOFF.delay(attempt, lambda: 0.5) for attempt in range(20)]  # noqa: SLF001

    assert 0.0 < pauses[0] < pauses[1] < pauses[-1] <= 60.0


async def test_a_reservation_pauses_before_each_new_try(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(database_url)
    is_away = iter([True, True, False])
    pauses = Pauses()
    reserve = PostgresBudget._reserve  # noqa: SLF001 - a database that is away and back at just these moments

    async def reserve_or_fail(books: PostgresBudget, *given: Any, **named: Any) -> list[Spending]:
        if next(is_away):
            raise Unavailable("It is away.", next_step="Wait.")
        return await reserve(books, *given, **named)

    monkeypatch.setattr(PostgresBudget, "_reserve", reserve_or_fail)
    monkeypatch.setattr(postgres_budget, "_RETRY_BACKOFF", pauses)
    monkeypatch.setattr(postgres_budget, "RECONNECT_SECONDS", PATIENCE)
    async with paying(database_url) as payer:
        await payer.reserve("me", 0.25)

        assert await payer.committed() == 0.25
    assert pauses.taken == ["base", "base"]


async def test_the_totals_of_this_day_and_month_are_remembered_and_no_others(database_url: str) -> None:
    await migrate(database_url)
    books = PostgresBudget(database_url)
    for day, payer in (("2026-09-21", "me"), ("2026-10-02", "me"), ("2026-10-02", "you")):
        send = Reservation(
            day=day, payer=payer, model="m", client="c", seconds=60.0, id=day + payer, worst_usd=0.5
        )
        await books.reserve(send, [])
    await books.close()

    remembered = books._known_totals  # noqa: SLF001 - what is known needs no statement of its own
    assert remembered == {
        (period, payer) for period in ("2026-10-02", "2026-10") for payer in ("", "me", "you")
    }


async def test_settled_sends_are_looked_for_once_an_hour(database_url: str) -> None:
    await migrate(database_url)
    async with paying(database_url) as payer:
        for _ in range(2):
            payer.end(await payer.reserve("me", 0.25), "settled", 0.125)
            await payer.committed()
            await execute(
                database_url, "update mercury_sends set reserved_until = now() - interval '2 hours'"
            )

    assert await execute(database_url, "select count(*) from mercury_sends") == [(2,)]
