"""What a ledger says, asks for ahead and gives back, where a database allots the money."""

import asyncio
import math

import pytest

from bridgehead.mercury.database.allotments import AllotmentDatabase
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import allotments, allotted_ledger, postgres
from bridgehead.runtime.stores.allotted_ledger import AllottedLedger
from bridgehead.runtime.stores.joint import Joint
from bridgehead.runtime.stores.ledger import Committed, Counter, Expense, MoneyClaim
from tests.runtime.stores.test_allotted_ledger import ADAS, DAY, TODAY, committed, opened, reserve
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("_patient")


async def obtain(ledger: AllottedLedger, dollars: float, client: str = "ada", own: float = 0.5) -> Committed:
    """Reserve for a client with a limit of its own, and return what the budget hears of it."""
    found: list[Committed] = []
    limits = {TODAY: 1.0, Counter(DAY, client): own}
    claim = MoneyClaim(ledger, Expense(DAY, client, dollars, limits), found.append)
    await Joint(ledger.redis, [claim]).obtain(math.inf)
    return found[-1]


async def wait_for_allotted(url: str, amount: int) -> None:
    """Wait until exactly so much of today's total was allotted."""
    store = AllotmentDatabase(url)
    async with asyncio.timeout(PATIENCE):
        while await store.look([TODAY]) != {TODAY: amount}:
            await asyncio.sleep(0.01)
    await store.close()


async def test_who_is_refused_hears_which_budget_is_in_the_way(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        first, second = await obtain(ledger, 0.3), await obtain(ledger, 0.3)

    assert (first.exceeded, second.exceeded) == (None, ADAS)
    assert first.dollars[TODAY] == second.dollars[ADAS] == pytest.approx(0.3)


async def test_a_budget_of_nothing_is_in_the_way_from_the_start(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        assert (await obtain(ledger, 0.01, own=0.0)).exceeded == ADAS


async def test_of_a_total_that_nobody_has_asked_for_nothing_is_committed(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        assert await committed(ledger) == 0.0


async def test_what_is_committed_is_known_without_the_database_while_nothing_is_void(
    redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> dict[Counter, int]:
        raise StorageError("gone")

    async with opened(redis_server.url, migrated_url) as ledger:
        assert await reserve(ledger, 1.0)
        monkeypatch.setattr(AllotmentDatabase, "look", fail)

        assert await committed(ledger) == 1.0


async def test_the_next_portion_is_asked_for_before_a_call_needs_it(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        assert await reserve(ledger, 0.01)
        await wait_for_allotted(migrated_url, 50_000)
        assert await reserve(ledger, 0.04), "all that is at hand"
        await wait_for_allotted(migrated_url, 100_000)


async def test_what_is_not_much_beyond_a_portion_stays_at_hand(
    redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_GIVE_BACK_SECONDS", PATIENCE)
    async with opened(redis_server.url, migrated_url) as ledger:
        name = await reserve(ledger, 0.15)
        ledger.settle(name, DAY, "ada", 0.0)
        await until(lambda: not ledger._unsettled)  # noqa: SLF001 - settling is not waited for

        assert not ledger._replenisher._surplus  # noqa: SLF001 - neither of this total nor of those without a limit


async def test_of_what_goes_back_two_portions_stay_at_hand(
    redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_GIVE_BACK_SECONDS", 0.01)
    async with opened(redis_server.url, migrated_url) as ledger:
        name = await reserve(ledger, 0.9)
        ledger.settle(name, DAY, "ada", 0.1)
        await wait_for_allotted(migrated_url, 200_000)


async def test_the_portions_of_several_totals_are_remembered(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        for client in ("ada", "bob"):
            await obtain(ledger, 0.01, client)

        assert ADAS in ledger._portions  # noqa: SLF001 - of others nothing goes back


async def test_of_very_many_totals_only_some_portions_are_remembered(
    redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotted_ledger, "_MOST_PORTIONS", 3)
    async with opened(redis_server.url, migrated_url) as ledger:
        portions = ledger._portions  # noqa: SLF001 - of others nothing goes back
        for client in ("ada", "bob", "eve"):
            await obtain(ledger, 0.01, client)
        assert ADAS in portions
        await obtain(ledger, 0.01, "kim")
        assert ADAS not in portions


async def test_a_settlement_that_comes_twice_is_over_like_any_other(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        name = await reserve(ledger, 0.5)
        for dollars in (0.1, 0.4):
            ledger.settle(name, DAY, "ada", dollars)
            telling = ledger._telling  # noqa: SLF001 - nobody waits for it
            assert telling is not None
            await telling

        assert await committed(ledger) == pytest.approx(0.1)


async def test_a_ledger_that_ends_lets_go_of_the_database(
    redis_server: RedisServer, migrated_url: str
) -> None:
    held = await postgres.acquire(migrated_url)
    async with opened(redis_server.url, migrated_url) as ledger:
        assert await reserve(ledger)
        assert held.users == 2
    assert held.users == 1
    await postgres.release(held)
