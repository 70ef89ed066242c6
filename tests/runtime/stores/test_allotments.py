"""Portions on their way from a durable store to Redis: each reaches one memory, once."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import allotments
from bridgehead.runtime.stores.allotments import Allotment, Replenisher, Request, Want, make_keys
from bridgehead.runtime.stores.ledger import Counter
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("_patient")

TODAY, ADAS = Counter("2026-11-16"), Counter("2026-11-16", "ada")
LIMIT = 10_000


class Store:
    """A store that a test looks into, and that can fail or take its time."""

    def __init__(self) -> None:
        self.asked: list[list[Request]] = []
        self.allotted: dict[Counter, int] = {}
        self.problem: Exception | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def allot(self, requests: Sequence[Request]) -> list[Allotment]:
        self.asked.append(list(requests))
        await self.may_answer.wait()
        if self.problem is not None:
            raise self.problem
        return [self._allot(one) for one in requests]

    def _allot(self, one: Request) -> Allotment:
        begin = max(one.known, self.allotted.get(one.counter, 0))
        self.allotted[one.counter] = max(begin, min(one.limit, begin + one.portion))
        return Allotment(one.counter, begin, self.allotted[one.counter])

    async def take_back(self, amounts: Mapping[Counter, int]) -> None:
        for counter, amount in amounts.items():
            self.allotted[counter] -= amount

    async def look(self, counters: Sequence[Counter]) -> dict[Counter, int]:
        if self.problem is not None:
            raise self.problem
        return {one: self.allotted.get(one, 0) for one in counters}

    async def close(self) -> None:
        self.may_answer.set()


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    async with connected(redis_server.url) as one:
        yield one


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allotments, "_GIVE_BACK_SECONDS", 0.01)


def want(amount: int = 50, counter: Counter = TODAY, limit: int = LIMIT) -> Want:
    return Want(counter, limit, amount, 50)


def at_hand(server: RedisServer, counter: Counter = TODAY) -> tuple[int, int]:
    """Return the total, and the one up to which money was allotted."""
    answers = [server.command("GET", key).split(b"\r\n")[1] for key in make_keys("", [counter])[2:]]
    total, ceiling = [int(answer.split()[0]) for answer in answers]
    return total, ceiling


@pytest.mark.parametrize(
    ("most", "limit", "portion"),
    [(50, LIMIT, 200), (1, LIMIT, 100), (9_000, LIMIT, 500), (0, 0, 0)],
)
def test_a_portion_is_enough_for_some_calls_and_a_small_part_of_a_limit(
    most: int, limit: int, portion: int
) -> None:
    assert Want(TODAY, limit, 0, most).portion == portion


@pytest.mark.parametrize(
    ("total", "left", "is_met"),
    [(0, -1, False), (0, 100, True), (0, 99, False), (LIMIT, 0, True), (LIMIT - 10, 10, True)],
)
def test_more_is_asked_for_when_half_of_a_portion_is_used(total: int, left: int, *, is_met: bool) -> None:
    assert want().is_met_by(total, left) is is_met


async def test_redis_gets_what_calls_wait_for_and_a_portion_beyond(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    await Replenisher(redis, store).replenish([want(), want(70, ADAS)])

    assert at_hand(redis_server) == (0, 250)
    assert at_hand(redis_server, ADAS) == (0, 270)
    assert store.asked == [[Request(TODAY, 250, LIMIT, 0), Request(ADAS, 270, LIMIT, 0)]]


async def test_what_many_wait_for_is_asked_for_together(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    replenisher = Replenisher(redis, store)
    store.may_answer.clear()
    asked = [asyncio.ensure_future(replenisher.replenish([want(600)])) for _ in range(5)]
    await until(lambda: store.asked)
    asked += [asyncio.ensure_future(replenisher.replenish([want(600)])) for _ in range(5)]
    await asyncio.sleep(0)
    store.may_answer.set()
    await asyncio.gather(*asked)

    assert len(store.asked) == 1, "what was asked for first is at hand for the second ones too"
    assert at_hand(redis_server) == (0, 3200)


@pytest.mark.usefixtures("_at_once")
async def test_very_many_totals_are_served_in_several_steps(redis: Redis, store: Store) -> None:
    replenisher = Replenisher(redis, store)
    counters = [Counter("2026-11-16", f"client-{number}") for number in range(2500)]
    await replenisher.replenish([want(600, counter) for counter in counters])
    assert [len(requests) for requests in store.asked] == [500] * 5

    for counter in counters:
        replenisher.give_back_later(counter, 300)
    await until(lambda: set(store.allotted.values()) == {300})


async def test_replicas_do_not_ask_for_the_same(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    one, other = Replenisher(redis, store), Replenisher(redis, store)
    store.may_answer.clear()
    asked = [asyncio.ensure_future(each.replenish([want()])) for each in (one, other)]
    await until(lambda: store.asked)
    store.may_answer.set()
    await asyncio.gather(*asked)

    assert len(store.asked) == 1
    assert at_hand(redis_server) == (0, 250)


async def test_the_turn_of_a_replica_that_died_ends(
    redis: Redis, redis_server: RedisServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_TURN_SECONDS", 0.05)
    dead, store.may_answer = Replenisher(redis, store), asyncio.Event()
    dead.replenish_soon([want()])
    await until(lambda: store.asked)
    other = Store()
    await Replenisher(redis, other).replenish([want()])

    assert at_hand(redis_server) == (0, 250)
    await dead.stop()


async def test_a_portion_for_a_memory_that_is_gone_is_lost(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    replenisher = Replenisher(redis, store)
    store.may_answer.clear()
    asking = asyncio.ensure_future(replenisher.replenish([want()]))
    await until(lambda: store.asked)
    redis_server.command("FLUSHALL")
    store.may_answer.set()
    await asking

    assert redis_server.command("EXISTS", TODAY.key, TODAY.ceiling_key) == b":0\r\n"
    await replenisher.replenish([want()])
    assert at_hand(redis_server) == (250, 500)


async def test_what_others_were_allotted_counts_as_spent(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want()])
    store.allotted[TODAY] = 1000  # by a replica on another Redis
    await replenisher.replenish([want(300)])

    assert at_hand(redis_server) == (750, 1250), "250 of before, and 250 more"


async def test_a_budget_that_is_used_up_is_told_as_it_is(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    store.allotted[TODAY] = LIMIT
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want()])
    await replenisher.replenish([want()])

    assert at_hand(redis_server) == (LIMIT, LIMIT)
    assert len(store.asked) == 1


async def test_a_failure_reaches_all_who_wait_and_the_next_one_tries_again(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    replenisher, store.problem = Replenisher(redis, store), StorageError("full")
    answers = await asyncio.gather(
        *(replenisher.replenish([want()]) for _ in range(3)), return_exceptions=True
    )
    assert [str(answer) for answer in answers] == ["full"] * 3
    replenisher.replenish_soon([want(0)])
    assert len(store.asked) == 1, "nobody asks ahead right after a failure"

    store.problem = None
    await replenisher.replenish([want()])
    assert at_hand(redis_server) == (0, 250)


async def test_asking_ahead_is_not_waited_for(redis: Redis, redis_server: RedisServer, store: Store) -> None:
    replenisher = Replenisher(redis, store)
    replenisher.replenish_soon([want(0)])
    await until(lambda: TODAY in store.allotted)
    await until(lambda: redis_server.command("EXISTS", TODAY.key) == b":1\r\n")

    assert at_hand(redis_server) == (0, 200)


async def test_who_waits_for_a_replica_that_ends_hears_of_it(redis: Redis, store: Store) -> None:
    replenisher = Replenisher(redis, store)
    store.may_answer.clear()
    first = asyncio.ensure_future(replenisher.replenish([want()]))
    await until(lambda: store.asked)
    second = asyncio.ensure_future(replenisher.replenish([want()]))
    await asyncio.sleep(0)
    await replenisher.stop()

    for waiting in (first, second):
        with pytest.raises(StorageError, match="is ending"):
            await waiting


# --- what goes back ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_at_once")
async def test_what_is_beyond_enough_goes_back(redis: Redis, redis_server: RedisServer, store: Store) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want(600), want(60, ADAS)])
    replenisher.give_back_later(TODAY, 300)
    replenisher.give_back_later(ADAS, 300)
    await until(lambda: store.allotted == {TODAY: 300, ADAS: 260})

    assert at_hand(redis_server) == (0, 300)
    assert at_hand(redis_server, ADAS) == (0, 260)
    await replenisher.replenish([want(400)])
    assert at_hand(redis_server) == (0, 600)


@pytest.mark.usefixtures("_at_once")
async def test_nothing_goes_back_that_a_memory_has_no_more(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want(600)])
    redis_server.command("FLUSHALL")
    replenisher.give_back_later(TODAY, 300)
    await until(lambda: replenisher._returning is None)  # noqa: SLF001 - nobody waits for it

    assert store.allotted == {TODAY: 800}


@pytest.mark.usefixtures("_at_once")
async def test_nothing_is_taken_out_for_a_store_that_is_gone(
    redis: Redis, redis_server: RedisServer, store: Store
) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want(600)])
    store.problem = StorageError("gone")
    replenisher.give_back_later(TODAY, 300)
    await until(lambda: replenisher._returning is None)  # noqa: SLF001 - nobody waits for it

    assert at_hand(redis_server) == (0, 800)


async def test_a_replica_that_ends_does_not_wait_until_it_may_give_back(redis: Redis, store: Store) -> None:
    replenisher = Replenisher(redis, store)
    replenisher.give_back_later(TODAY, 300)
    returning = replenisher._returning  # noqa: SLF001 - nobody waits for it
    await replenisher.stop()

    assert returning is not None
    assert returning.done()
