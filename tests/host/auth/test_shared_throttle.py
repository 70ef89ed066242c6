"""The shared throttle: several replicas let through what one would, and each goes on without Redis."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from statistics import median
from time import monotonic

import pytest

from bridgehead.host.auth.shared_throttle import SharedThrottle
from bridgehead.host.auth.throttle import Throttle
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_redis import connected
from tests.support.proxy import Fault, proxied
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE, until

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
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url), 0.05) as redis:
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

    assert limit <= passed <= limit + refilled + 1


async def test_many_who_ask_at_once_are_one_round_trip(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        throttle = shared(redis)

        waits = await asyncio.gather(*(throttle.take("ada", 40) for _ in range(50)))

        assert waits.count(0.0) == 40
        assert all(0 < wait <= 1.5 for wait in waits if wait)
        assert redis.pipelines <= 2  # the second where Redis did not know the script


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
        async with asyncio.timeout(PATIENCE):
            while not (wait := await throttle.take("ada", 600)):  # a busy machine refills while it asks
                pass
        assert wait <= 0.1
        await asyncio.sleep(wait)

        assert await throttle.take("ada", 600) == 0.0


async def test_without_redis_each_replica_counts_for_itself(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            throttle = shared(redis)
            server.kill()

            waits = [await throttle.take("ada", 3) for _ in range(5)]

    assert [wait == 0.0 for wait in waits] == [True, True, True, False, False]
    assert throttle.without_redis == 5


async def test_without_redis_nothing_passes_where_that_is_set(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            throttle = shared(redis, fails_closed=True)
            assert await throttle.take("ada", 1000) == 0.0
            server.kill()

            assert await throttle.take("ada", 1000) > 0


async def test_a_silent_redis_holds_a_request_up_for_a_moment_only(redis_server: RedisServer) -> None:
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url), 0.05) as redis:
        throttle = shared(redis)
        await until(lambda: redis.is_up)
        proxy.fault = "silent"

        assert [await throttle.take("ada", 3) for _ in range(2)] == [0.0, 0.0]
        assert throttle.without_redis == 2
        proxy.fault = "none"
        await until(lambda: redis.is_up)
        assert await throttle.take("ada", 3) == 0.0
        assert throttle.without_redis == 2
