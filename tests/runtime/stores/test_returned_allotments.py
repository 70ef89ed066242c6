"""What calls held and did not spend, on its way from Redis back to the store."""

import asyncio

import pytest

from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores.allotments import Replenisher
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_allotments import ADAS, TODAY, at_hand, want
from tests.support.allotment_store import AllotmentsInMemory
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("_patient")


@pytest.mark.usefixtures("_at_once")
async def test_what_is_beyond_enough_goes_back(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want(600), want(60, ADAS)])
    replenisher.give_back_later(TODAY, 300)
    replenisher.give_back_later(ADAS, 300)
    await until(lambda: store.allotted == {TODAY: 300, ADAS: 260})

    assert at_hand(redis_server) == (0, 300)
    assert at_hand(redis_server, ADAS) == (0, 260)
    assert store.taken == [{TODAY: 500}]
    await replenisher.replenish([want(400)])
    assert at_hand(redis_server) == (0, 600)


@pytest.mark.usefixtures("_at_once")
async def test_even_the_least_goes_back(redis: Redis, store: AllotmentsInMemory) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want(600)])
    replenisher.give_back_later(TODAY, 799)
    await until(lambda: store.taken == [{TODAY: 1}])


async def give_back(replenisher: Replenisher) -> None:
    """Give back what is beyond 300, and wait until it is over."""
    replenisher.give_back_later(TODAY, 300)
    await until(lambda: replenisher._returning is None)  # noqa: SLF001 - nobody waits for it


@pytest.mark.usefixtures("_at_once")
async def test_nothing_goes_back_that_a_memory_has_no_more(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want(600)])
    redis_server.command("FLUSHALL")
    await give_back(replenisher)

    assert store.allotted == {TODAY: 800}
    assert store.taken == []


@pytest.mark.usefixtures("_at_once")
async def test_nothing_is_taken_out_for_a_store_that_is_gone(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want(600)])
    store.problem = StorageError("gone")
    await give_back(replenisher)

    assert at_hand(redis_server) == (0, 800)


async def test_a_replica_that_ends_does_not_wait_until_it_may_give_back(
    redis: Redis, store: AllotmentsInMemory
) -> None:
    replenisher = Replenisher(redis, store)
    replenisher.give_back_later(TODAY, 300)
    returning = replenisher._returning  # noqa: SLF001 - nobody waits for it
    await asyncio.sleep(0)
    assert TODAY in replenisher._surplus, "calls may still need it"  # noqa: SLF001 - the same
    await replenisher.stop()

    assert returning is not None
    assert returning.done()
