"""Allotments: a portion is handed out once, up to the limit, however many ask at once."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridgehead.commands import db
from bridgehead.mercury.database import allotments
from bridgehead.mercury.database.allotments import AllotmentDatabase
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import postgres
from bridgehead.runtime.stores.allotments import Request
from bridgehead.runtime.stores.ledger import Counter
from tests.support.postgres_server import PostgresServer

TODAY, ADAS = Counter("2026-11-16"), Counter("2026-11-16", "ada")


@pytest.fixture(params=["postgresql", "pgbouncer"])
def url(request: pytest.FixtureRequest) -> str:
    given: str = request.getfixturevalue("database_url" if request.param == "postgresql" else "pooled_url")
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": given})
    return given


@pytest.fixture
async def store(url: str) -> AsyncIterator[AllotmentDatabase]:
    one = AllotmentDatabase(url)
    yield one
    await one.close()


async def allot(store: AllotmentDatabase, portion: int, limit: int = 100, known: int = 0) -> tuple[int, int]:
    [found] = await store.allot([Request(TODAY, portion, limit, known)])
    assert found.counter == TODAY
    return found.begin, found.end


async def test_portions_follow_each_other_up_to_the_limit(store: AllotmentDatabase) -> None:
    assert [await allot(store, 40) for _ in range(4)] == [(0, 40), (40, 80), (80, 100), (100, 100)]
    assert await store.look([TODAY, ADAS]) == {TODAY: 100}


async def test_what_is_known_to_be_spent_is_not_allotted_again(store: AllotmentDatabase) -> None:
    assert await allot(store, 40, known=30) == (30, 70)
    assert await allot(store, 10, known=20) == (70, 80)
    assert await allot(store, 40, known=90) == (90, 100)
    assert await allot(store, 40, known=120) == (120, 120)
    assert (await store.look([TODAY]))[TODAY] == 120


async def test_a_limit_that_was_changed_takes_nothing_back(store: AllotmentDatabase) -> None:
    assert await allot(store, 80) == (0, 80)
    assert await allot(store, 10, limit=50) == (80, 80)
    assert await allot(store, 300, limit=200) == (80, 200)


async def test_several_totals_are_allotted_in_one_statement(store: AllotmentDatabase) -> None:
    found = await store.allot([Request(TODAY, 40, 100, 0), Request(ADAS, 10, 20, 15)])

    assert {(one.counter, one.begin, one.end) for one in found} == {(TODAY, 0, 40), (ADAS, 15, 20)}


async def test_what_was_taken_back_is_allotted_again(store: AllotmentDatabase) -> None:
    await allot(store, 80)
    await store.take_back({TODAY: 30, ADAS: 5})

    assert await store.look([TODAY, ADAS]) == {TODAY: 50}
    assert await allot(store, 10) == (50, 60)


async def test_no_portion_is_handed_out_twice(url: str) -> None:
    own = f"{url}{'&' if '?' in url else '?'}statement_timeout="  # another address is another connection
    stores = [AllotmentDatabase(f"{own}{60_000 + n}") for n in range(4)]
    asked = [
        one.allot([Request(counter, 7, 300, 0) for counter in order])
        for one in stores
        for order in ((TODAY, ADAS), (ADAS, TODAY)) * 3
    ]
    found = [one for answer in await asyncio.gather(*asked) for one in answer]
    for one in stores:
        await one.close()

    for counter in (TODAY, ADAS):
        ranges = sorted((one.begin, one.end) for one in found if one.counter == counter)
        assert ranges == [(7 * n, 7 * n + 7) for n in range(24)]


async def test_months_that_are_over_are_forgotten(store: AllotmentDatabase, url: str) -> None:
    old = [Counter("2020-01"), Counter("2020-01-31", "ada")]
    await store.allot([Request(one, 1, 100, 0) for one in old])
    assert len(await store.look(old)) == 2
    further = AllotmentDatabase(url)
    await allot(further, 1, known=0)
    assert await further.look([*old, TODAY]) == {TODAY: 1}
    await further.close()


async def test_months_that_are_over_are_looked_for_once_a_day(
    store: AllotmentDatabase, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, day = 0.0, 24 * 60 * 60
    monkeypatch.setattr(allotments, "monotonic", lambda: now)
    old, other = Counter("2020-01"), AllotmentDatabase(url)

    async def is_kept() -> bool:
        await allot(store, 1)
        return old in await store.look([old])

    await other.allot([Request(old, 1, 100, 0)])
    assert not await is_kept()
    await other.allot([Request(old, 1, 100, 0)])
    await other.close()
    now = day - 1
    assert await is_kept()
    now = day
    assert not await is_kept()


async def test_a_store_lets_go_of_the_database_once(url: str) -> None:
    held, store = await postgres.acquire(url), AllotmentDatabase(url)
    await store.close()  # nothing was asked of it yet
    await store.look([TODAY])
    assert held.users == 2
    await store.close()
    await store.close()
    assert held.users == 1
    await postgres.release(held)


async def test_without_its_table_nothing_is_allotted(postgres_server: PostgresServer) -> None:
    store = AllotmentDatabase(await asyncio.to_thread(postgres_server.make_database))
    with pytest.raises(StorageError, match="bridgehead db migrate"):
        await store.look([TODAY])
    await store.close()
