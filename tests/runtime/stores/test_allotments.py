"""Portions on their way from a durable store to Redis: each reaches one memory, once."""

import asyncio
import gc
from pathlib import Path

import pytest

from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import StoreUnavailable, allotments
from bridgehead.runtime.stores.allotments import Replenisher, Request, Want, make_keys
from bridgehead.runtime.stores.ledger import Counter
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_redis import connected
from tests.support.allotment_store import AllotmentsInMemory
from tests.support.redis_server import RedisServer, faulty, running_redis
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("_patient")

TODAY, ADAS = Counter("2026-11-16"), Counter("2026-11-16", "ada")
LIMIT = 10_000
TURN = "bridgehead:budget:turn"


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


@pytest.mark.parametrize(("left", "is_met"), [(299, False), (300, True)])
def test_what_calls_wait_for_has_to_be_there(left: int, *, is_met: bool) -> None:
    assert want(300).is_met_by(0, left) is is_met


@pytest.mark.parametrize(
    ("left", "portion", "known"), [(-1, 500, 1000), (0, 500, 1000), (100, 400, 1100), (400, 200, 1400)]
)
def test_what_is_at_hand_is_not_asked_for_again(left: int, portion: int, known: int) -> None:
    assert want(300).to_request(1000, left) == Request(TODAY, portion, LIMIT, known)


async def test_redis_gets_what_calls_wait_for_and_a_portion_beyond(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    await Replenisher(redis, store).replenish([want(), want(70, ADAS)])

    assert at_hand(redis_server) == (0, 250)
    assert at_hand(redis_server, ADAS) == (0, 270)
    assert store.asked == [[Request(TODAY, 250, LIMIT, 0), Request(ADAS, 270, LIMIT, 0)]]


async def test_what_many_wait_for_is_asked_for_together(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
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
async def test_very_many_totals_are_served_in_several_steps(redis: Redis, store: AllotmentsInMemory) -> None:
    replenisher = Replenisher(redis, store)
    counters = [Counter("2026-11-16", f"client-{number}") for number in range(2500)]
    await replenisher.replenish([want(600, counter) for counter in counters])
    assert [len(requests) for requests in store.asked] == [500] * 5

    for counter in counters:
        replenisher.give_back_later(counter, 300)
    await until(lambda: set(store.allotted.values()) == {300})


async def test_replicas_do_not_ask_for_the_same(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
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
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_TURN_SECONDS", 0.05)
    dead, store.may_answer = Replenisher(redis, store), asyncio.Event()
    dead.replenish_soon([want()])
    await until(lambda: store.asked)
    other = AllotmentsInMemory()
    await Replenisher(redis, other).replenish([want()])

    assert at_hand(redis_server) == (0, 250)
    await dead.stop()


def test_a_replica_waits_for_its_turn_longer_than_a_dead_one_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # no more patience than the product has

    assert allotments._MOST_WAIT > allotments._TURN_SECONDS  # noqa: SLF001


async def test_a_turn_ends_with_what_it_was_for(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    store.may_answer.clear()
    asking = asyncio.ensure_future(Replenisher(redis, store).replenish([want()]))
    await until(lambda: store.asked)
    assert int(redis_server.command("PTTL", TURN)[1:]) > PATIENCE / 2 * 1000
    store.may_answer.set()
    await asking

    await until(lambda: redis_server.command("EXISTS", TURN) == b":0\r\n")


async def test_a_replica_that_never_gets_its_turn_gives_up(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_MOST_WAIT", 0.01)
    redis_server.command("SET", TURN, "another")
    with pytest.raises(StorageError, match="Other replicas ask for money all the time"):
        await Replenisher(redis, store).replenish([want()])

    assert store.asked == []


async def test_a_replica_that_waits_for_its_turn_does_not_ask_all_the_time(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_AGAIN_SECONDS", PATIENCE)
    redis_server.command("SET", TURN, "another")
    replenisher = Replenisher(redis, store)
    replenisher.replenish_soon([want(0)])
    for _ in range(10):
        await redis.call("PING")

    assert redis.commands == 10 + 1
    await replenisher.stop()


async def test_a_portion_that_did_not_reach_redis_is_delivered_later(
    redis_server: RedisServer, store: AllotmentsInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_TURN_SECONDS", 0.5)  # its end does not reach Redis either
    async with faulty(redis_server) as proxy, connected(proxy.url, 0.5) as redis:
        replenisher = Replenisher(redis, store)
        store.may_answer.clear()
        asking = asyncio.ensure_future(replenisher.replenish([want()]))
        await until(lambda: store.asked)
        proxy.fault = "silent"
        store.may_answer.set()
        with pytest.raises(StoreUnavailable):
            await asking
        assert redis_server.command("EXISTS", TODAY.key) == b":0\r\n"
        proxy.fault = "none"
        proxy.cut()
        await until(lambda: redis.is_up)
        await replenisher.replenish([want()])
        await replenisher.replenish([want(600)])

    assert replenisher._undelivered is None  # noqa: SLF001 - it is delivered once
    assert at_hand(redis_server) == (0, 800)
    assert [requests[0].known for requests in store.asked] == [0, 250]


async def test_a_redis_that_does_not_say_which_data_it_has_gets_nothing(
    tmp_path: Path, store: AllotmentsInMemory
) -> None:
    with running_redis(tmp_path) as server:
        server.command("ACL", "SETUSER", "default", "-info")
        async with connected(server.url) as redis:
            with pytest.raises(StorageError, match="Allow its user the command INFO"):
                await Replenisher(redis, store).replenish([want()])

    assert store.asked == []


async def test_a_portion_for_a_memory_that_is_gone_is_lost(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
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
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want()])
    store.allotted[TODAY] = 1000  # by a replica on another Redis
    await replenisher.replenish([want(300)])

    assert at_hand(redis_server) == (750, 1250), "250 of before, and 250 more"


async def test_a_budget_that_is_used_up_is_told_as_it_is(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    store.allotted[TODAY] = LIMIT
    replenisher = Replenisher(redis, store)
    await replenisher.replenish([want()])
    await replenisher.replenish([want()])

    assert at_hand(redis_server) == (LIMIT, LIMIT)
    assert len(store.asked) == 1


async def test_a_failure_reaches_all_who_wait_and_the_next_one_tries_again(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    replenisher, store.problem = Replenisher(redis, store), StorageError("full")
    answers = await asyncio.gather(
        *(replenisher.replenish([want()]) for _ in range(3)), return_exceptions=True
    )
    assert [str(answer) for answer in answers] == ["full"] * 3
    replenisher.replenish_soon([want(0)])
    assert replenisher._task is None, "nobody asks ahead right after a failure"  # noqa: SLF001

    store.problem = None
    await replenisher.replenish([want()])
    assert at_hand(redis_server) == (0, 250)


async def test_asking_ahead_is_not_waited_for(
    redis: Redis, redis_server: RedisServer, store: AllotmentsInMemory
) -> None:
    replenisher = Replenisher(redis, store)
    replenisher.replenish_soon([want(0)])
    await until(lambda: TODAY in store.allotted)
    await until(lambda: redis_server.command("EXISTS", TODAY.key) == b":1\r\n")

    assert at_hand(redis_server) == (0, 200)


async def test_nobody_asks_ahead_while_others_ask(redis: Redis, store: AllotmentsInMemory) -> None:
    replenisher = Replenisher(redis, store)
    store.may_answer.clear()
    asking = asyncio.ensure_future(replenisher.replenish([want()]))
    await until(lambda: store.asked)
    replenisher.replenish_soon([want(0, ADAS)])
    store.may_answer.set()
    await asking
    await until(lambda: replenisher._task is None)  # noqa: SLF001 - nobody waits for it

    assert [[one.counter for one in requests] for requests in store.asked] == [[TODAY]]


async def test_a_failure_that_nobody_waits_for_is_no_fault_of_the_program(
    redis: Redis, store: AllotmentsInMemory
) -> None:
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    replenisher, store.problem = Replenisher(redis, store), StorageError("full")
    replenisher.replenish_soon([want(0)])
    await until(lambda: store.asked)
    await until(lambda: replenisher._task is None)  # noqa: SLF001 - nobody waits for it
    store.problem = None
    gc.collect()  # what nobody has looked at is told when it is collected

    assert faults == []


async def test_who_waits_for_a_replica_that_ends_hears_of_it(redis: Redis, store: AllotmentsInMemory) -> None:
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
    assert store.is_closed
