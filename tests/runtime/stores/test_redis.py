"""The connection to Redis: joined commands, scripts, a bounded time, and going on after any fault."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from bridgehead.runtime import stores
from bridgehead.runtime.directories import ReplicaSettings
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.stores import Script, StoreError, StoreUnavailable, open_redis
from bridgehead.runtime.stores.redis import MAX_WAITING, Redis
from tests.support.proxy import proxied
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE, until

SLOW = 0.05
ADD = Script("return redis.call('INCRBY', KEYS[1], ARGV[1])")


@asynccontextmanager
async def connected(url: str, seconds: float = PATIENCE) -> AsyncIterator[Redis]:
    redis = Redis(url, seconds)
    await redis.start()
    try:
        yield redis
    finally:
        await redis.close()


async def works_again(redis: Redis) -> None:
    await until(lambda: redis.is_up)
    assert await redis.call("SET", "k", "again") == b"OK"


async def test_commands_that_wait_in_one_turn_are_one_round_trip(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        answers = await asyncio.gather(*(redis.call("INCR", "n") for _ in range(50)))

        assert answers == list(range(1, 51))
        assert (redis.commands, redis.pipelines) == (50, 1)


async def test_a_script_runs_before_and_after_redis_knows_it(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        assert [await redis.run(ADD, ["n"], [5]), await redis.run(ADD, ["n"], [5])] == [5, 10]

        redis_server.command("SCRIPT", "FLUSH")

        assert await redis.run(ADD, ["n"], [5]) == 15


async def test_the_first_run_of_a_script_is_one_round_trip_too(redis_server: RedisServer) -> None:
    redis_server.command("SCRIPT", "FLUSH")
    async with connected(redis_server.url) as redis:
        await redis.run(ADD, ["n"], [5])

        assert redis.pipelines == 1


async def test_a_refused_command_fails_alone_and_says_why(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        good, bad = redis.call("SET", "k", "v"), redis.call("INCR", "k")

        assert await good == b"OK"
        with pytest.raises(StoreError, match="refused INCR: value is not an integer"):
            await bad
        assert redis.is_up


async def test_a_silent_redis_costs_one_wait_and_then_none(redis_server: RedisServer) -> None:
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url), SLOW) as redis:
        await redis.call("PING")
        proxy.fault = "silent"

        with pytest.raises(StoreUnavailable, match="did not answer within 50 ms"):
            await redis.call("PING")
        for _ in range(100):
            answer = redis.call("PING")
            assert answer.done()
            assert isinstance(answer.exception(), StoreUnavailable)
        assert redis.failures["slow"] >= 1

        proxy.fault = "none"
        await works_again(redis)


async def test_what_waits_behind_a_slow_pipeline_fails_with_it(redis_server: RedisServer) -> None:
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url), SLOW) as redis:
        await redis.call("PING")
        proxy.fault = "silent"
        first = redis.call("PING")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        behind = redis.call("PING")

        results = await asyncio.gather(first, behind, return_exceptions=True)

        assert [type(result) for result in results] == [StoreUnavailable] * 2


async def test_a_slow_answer_that_comes_in_time_is_taken(redis_server: RedisServer) -> None:
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url)) as redis:
        proxy.delay = 0.02

        assert await redis.call("SET", "k", "v") == b"OK"


@contextmanager
def busy_loop(seconds: float) -> Iterator[None]:
    """Make every turn of the loop take at least this long."""
    loop = asyncio.get_running_loop()
    is_over = False

    def work() -> None:
        time.sleep(seconds)
        if not is_over:
            loop.call_soon(work)

    loop.call_soon(work)
    try:
        yield
    finally:
        is_over = True


async def test_a_busy_loop_is_not_taken_for_a_slow_redis(redis_server: RedisServer) -> None:
    with busy_loop(0.1):
        async with connected(redis_server.url) as redis:
            assert redis.is_up
            assert not redis.failures


async def test_a_connection_closed_in_between_is_opened_again_without_a_failure(
    redis_server: RedisServer,
) -> None:
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url)) as redis:
        await redis.call("PING")
        proxy.cut()

        assert await redis.call("SET", "k", "v") == b"OK"
        assert proxy.connections >= 2
        assert not redis.failures


async def test_redis_is_killed_and_started_again(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            await redis.run(ADD, ["n"], [1])
            server.kill()
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                await redis.call("PING")
            assert redis.failures["gone"] >= 1
            server.start()

            await works_again(redis)
            assert await redis.run(ADD, ["n"], [1]) == 1


async def test_a_read_only_redis_is_of_no_use_until_it_can_write(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        redis_server.command("REPLICAOF", "127.0.0.1", "1")
        try:
            with pytest.raises(StoreUnavailable, match="read-only"):
                await redis.run(ADD, ["n"], [1])
            assert redis.problem.startswith("It is read-only")
        finally:
            redis_server.command("REPLICAOF", "NO", "ONE")

        await works_again(redis)


async def test_a_full_redis_is_of_no_use_until_it_has_room(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        redis_server.command("CONFIG", "SET", "maxmemory", "1")
        try:
            with pytest.raises(StoreUnavailable, match="full"):
                await redis.call("SET", "k", "v")
        finally:
            redis_server.command("CONFIG", "SET", "maxmemory", "0")

        await works_again(redis)


async def test_a_redis_that_is_not_there_at_the_start_is_found_later(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    async with connected(server.url) as redis:
        with pytest.raises(StoreUnavailable):
            await redis.call("PING")
        server.start()
        try:
            await works_again(redis)
        finally:
            server.kill()


async def test_a_wrong_password_is_named(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        server.command("CONFIG", "SET", "requirepass", "secret-of-redis")
        async with connected(f"redis://:wrong@127.0.0.1:{server.port}/0") as redis:
            await until(lambda: "password" in redis.problem)
        async with connected(f"redis://:secret-of-redis@127.0.0.1:{server.port}/0") as redis:
            assert await redis.call("SET", "k", "v") == b"OK"


async def test_more_than_can_wait_is_refused(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        waiting = [redis.call("PING") for _ in range(MAX_WAITING)]

        with pytest.raises(StoreUnavailable, match="wait for it already"):
            await redis.call("PING")
        assert set(await asyncio.gather(*waiting)) == {b"PONG"}


async def test_a_process_has_one_connection_for_all_who_ask(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "REDIS_SECONDS", PATIENCE)  # the machine may be busy
    settings = ReplicaSettings({"BRIDGEHEAD_REDIS_URL": redis_server.url})
    first, second = open_redis(settings), open_redis(settings)
    assert first is not None
    assert first is second
    await first.start()
    await first.start()
    await first.close()

    assert await first.call("PING") == b"PONG"

    await first.close()
    with pytest.raises(StoreUnavailable, match="ending"):
        await first.call("PING")
    assert open_redis(settings) is not first


async def test_it_closes_whatever_is_under_way(redis_server: RedisServer) -> None:
    for turns in range(40):
        redis = Redis(redis_server.url, PATIENCE)
        await redis.start()
        redis.notices.subscribe("news", lambda _: None)
        asked = [redis.call("PING") for _ in range(turns % 3)]
        for _ in range(turns % 5):
            await asyncio.sleep(0)

        async with asyncio.timeout(PATIENCE):
            await redis.close()
        await asyncio.gather(*asked, return_exceptions=True)
        assert all(answer.done() for answer in asked)


def test_nothing_is_opened_where_nothing_is_set() -> None:
    assert open_redis(ReplicaSettings({})) is None


async def test_metrics_tell_how_redis_is(redis_server: RedisServer) -> None:
    metrics = Metrics()
    async with connected(redis_server.url) as redis:
        redis.declare_metrics(metrics)
        await redis.call("PING")

        shown = {metric.name: metric.values for metric in metrics.all if not hasattr(metric, "bounds")}

    assert shown["bridgehead_redis_commands_total"] == {(): 1.0}
    assert set(shown) == {
        f"bridgehead_redis_{name}" for name in ("up", "failures_total", "commands_total", "pipelines_total")
    }
