"""The shared throttle: several replicas let through what one would, and each goes on without Redis."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from statistics import median
from time import monotonic

import pytest

from bridgehead.host.auth.shared_throttle import AHEAD_SECONDS, MOST_AHEAD, SharedThrottle
from bridgehead.host.auth.throttle import Throttle
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import Fault, RedisServer, faulty, running_redis
from tests.support.waiting import until

Take = Callable[[str, int], Awaitable[float]]


def shared(redis: Redis, *, fails_closed: bool = False) -> SharedThrottle:
    return SharedThrottle(redis, Throttle(monotonic), fails_closed=fails_closed)


@pytest.fixture(params=["memory", "redis"])
async def take(request: pytest.FixtureRequest, redis_server: RedisServer) -> AsyncIterator[Take]:
    """Each place where requests are counted."""
    if request.param == "redis":
        async with connected(redis_server.url) as redis:
            yield shared(redis).take
        return
    local = Throttle(monotonic)

    async def take_here(name: str, per_minute: int) -> float:
        return local.take(name, per_minute)

    yield take_here


async def test_a_minutes_worth_passes_and_then_each_has_to_wait(take: Take) -> None:
    started = monotonic()
    waits = [await take("ada", 20) for _ in range(30)]
    refilled = (monotonic() - started) * 20 / 60

    assert waits[:20] == [0.0] * 20
    assert waits.count(0.0) <= 20 + refilled
    assert all(0 <= wait <= 3.0 for wait in waits)
    assert waits[20] > 0 or refilled >= 1


async def test_names_do_not_share_what_they_may(take: Take) -> None:
    assert [await take(name, 1) == 0.0 for name in ("ada", "bob", "ada")] == [True, True, False]


@pytest.mark.parametrize("fault", ["silent", "refused"])
async def test_a_redis_that_fails_adds_at_most_its_own_time_to_a_request(
    redis_server: RedisServer, fault: Fault
) -> None:
    took = []
    async with faulty(redis_server) as proxy, connected(proxy.url, 0.05) as redis:
        throttle = shared(redis)
        proxy.fault = fault
        proxy.cut()
        for _ in range(31):
            begin = monotonic()
            assert await throttle.take("ada", 1000) == 0.0
            took.append(monotonic() - begin)

    assert median(took) < 0.05
    assert throttle.without_redis > 0


@pytest.mark.parametrize("limit", [1, 7, 60, 3000])
async def test_two_replicas_let_through_what_one_would(redis_server: RedisServer, limit: int) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        replicas = [shared(one), shared(other)]
        passed = 0
        started = monotonic()
        for turn in range(limit * 2):
            passed += await replicas[turn % 2].take("ada", limit) == 0.0
        refilled = (monotonic() - started) * limit / 60

    assert limit - len(replicas) <= passed <= limit + len(replicas) + refilled


async def test_many_who_ask_at_once_are_one_round_trip(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        throttle = shared(redis)

        waits = await asyncio.gather(*(throttle.take("ada", 40) for _ in range(50)))

        assert waits.count(0.0) == 40
        assert all(0 < wait <= 1.5 for wait in waits if wait)
        assert redis.pipelines <= 2  # the second where Redis did not know the script


async def test_far_from_the_limit_most_requests_need_no_round_trip(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        throttle = shared(redis)
        for _ in range(MOST_AHEAD * 10):
            assert await throttle.take("ada", 100_000) == 0.0

        assert redis.commands <= 2 * 10 + 2


async def test_the_first_request_at_a_replica_does_not_wait_for_redis(redis_server: RedisServer) -> None:
    async with faulty(redis_server) as proxy, connected(proxy.url) as redis:
        throttle = shared(redis)
        proxy.fault = "silent"

        assert throttle.take_now("ada", 10)
        assert not throttle.take_now("ada", 10), "Redis has not answered yet"


async def test_no_request_waits_for_redis_down_to_the_last_one(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        throttle = shared(redis)
        for _ in range(5):
            assert throttle.take_now("ada", 5)
            await redis.call("PING")  # answered after what the throttle has told

        assert not throttle.take_now("ada", 5)
        assert await throttle.take("ada", 5) > 0


async def test_a_request_does_not_wait_once_the_bucket_must_have_been_refilled(
    redis_server: RedisServer,
) -> None:
    async with connected(redis_server.url) as redis:
        throttle = shared(redis)
        await asyncio.gather(*(throttle.take("ada", 600) for _ in range(600)))
        await asyncio.sleep(await throttle.take("ada", 600))

        assert throttle.take_now("ada", 600)


async def test_one_more_than_there_is_passes_at_most_in_each_replica(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        late, busy = shared(one), shared(other)
        assert await late.take("ada", 10) == 0.0
        await one.call("PING")
        started = monotonic()
        while await busy.take("ada", 10) == 0.0:
            pass
        passed = [late.take_now("ada", 10) or await late.take("ada", 10) == 0.0 for _ in range(10)]
        refilled = (monotonic() - started) * 10 / 60

    assert passed[0]
    assert sum(passed) <= 1 + refilled + 1


async def test_what_passed_on_trust_beyond_the_limit_is_made_up_for(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        busy, late = shared(one), shared(other)
        assert [await busy.take("ada", 2) for _ in range(2)] == [0.0, 0.0]
        assert late.take_now("ada", 2)

        assert 30 < await late.take("ada", 2) <= 60, "one takes 30 seconds, and one is owed"


async def test_what_was_taken_ahead_and_not_used_is_given_back(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as one, connected(redis_server.url) as other:
        busy, idle = shared(one), shared(other)
        assert await idle.take("ada", 600) == 0.0
        await other.call("PING")
        assert idle.take_now("ada", 600)
        commands = other.commands
        await until(lambda: other.commands > commands)

        passed = 0
        while await busy.take("ada", 600) == 0.0:
            passed += 1

        assert passed >= 600 - 2 - 1


async def test_callers_do_not_share_a_bucket(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        throttle = shared(redis)
        assert [await throttle.take(name, 1) > 0 for name in ("a", "b", "a", "b")] == [
            False,
            False,
            True,
            True,
        ]


async def test_the_bucket_is_refilled_as_time_goes_by(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        throttle = shared(redis)
        await asyncio.gather(*(throttle.take("ada", 600) for _ in range(600)))
        wait = await throttle.take("ada", 600)
        assert 0 < wait <= 0.1
        await asyncio.sleep(wait)

        assert await throttle.take("ada", 600) == 0.0


async def test_without_redis_each_replica_counts_for_itself(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            throttle = shared(redis)
            server.kill()

            waits = [await throttle.take("ada", 3) for _ in range(5)]

    assert [wait == 0.0 for wait in waits] == [True, True, True, False, False]
    assert throttle.without_redis == 5, "the first passed on trust and counts too"


async def test_without_redis_nothing_passes_where_that_is_set(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            throttle = shared(redis, fails_closed=True)
            assert await throttle.take("ada", 1000) == 0.0
            await asyncio.sleep(AHEAD_SECONDS)
            server.kill()
            await until(lambda: not redis.is_up)
            await until(lambda: not throttle.take_now("ada", 1000))

            assert await throttle.take("ada", 1000) > 0


async def test_a_silent_redis_holds_a_request_up_for_a_moment_only(redis_server: RedisServer) -> None:
    async with faulty(redis_server) as proxy, connected(proxy.url, 0.05) as redis:
        throttle = shared(redis)
        await until(lambda: redis.is_up)
        proxy.fault = "silent"

        assert [await throttle.take("ada", 3) for _ in range(2)] == [0.0, 0.0]
        assert throttle.without_redis == 2
        proxy.fault = "none"
        await until(lambda: redis.is_up)
        assert await throttle.take("ada", 3) == 0.0
        assert throttle.without_redis == 2
