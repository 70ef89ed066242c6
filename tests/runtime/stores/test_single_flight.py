"""Single flight: equal work is done once, handed on when its holder dies, and done alone without Redis."""

import asyncio
from pathlib import Path

import pytest

from bridgehead.runtime.stores import single_flight
from bridgehead.runtime.stores.single_flight import SingleFlight
from tests.runtime.stores.test_redis import connected
from tests.support.proxy import proxied
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE, until


class Work:
    """Something dear, which a test lets end."""

    def __init__(self, result: bytes = b"answer") -> None:
        self.begun = 0
        self.may_end = asyncio.Event()
        self._result = result

    async def __call__(self) -> bytes:
        self.begun += 1
        await self.may_end.wait()
        return self._result


async def test_equal_work_under_way_elsewhere_is_joined_and_its_result_kept(
    redis_server: RedisServer,
) -> None:
    async with connected(redis_server.url) as here, connected(redis_server.url) as there:
        one, other, work = SingleFlight(here, 60), SingleFlight(there, 60), Work()
        first = asyncio.create_task(one.run(b"k", work))
        await until(lambda: work.begun)
        joined = [asyncio.create_task(other.run(b"k", work)) for _ in range(3)]
        await until(lambda: there.commands >= 3)
        work.may_end.set()

        assert await first == (b"answer", False)
        assert await asyncio.gather(*joined) == [(b"answer", True)] * 3
        assert await other.run(b"k", work) == (b"answer", True), "it is kept"
        assert work.begun == 1
        assert (await other.run(b"other", work))[1] is False


async def test_when_its_holder_gives_up_another_takes_over(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as here, connected(redis_server.url) as there:
        work = Work()
        first = asyncio.create_task(SingleFlight(here, 60).run(b"k", work))
        await until(lambda: work.begun == 1)
        second = asyncio.create_task(SingleFlight(there, 60).run(b"k", work))
        await until(lambda: there.commands >= 1)
        first.cancel()

        await until(lambda: work.begun == 2)
        work.may_end.set()
        assert await second == (b"answer", False)


async def test_when_its_holder_dies_another_takes_over(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_flight, "LOCK_SECONDS", 0.5)
    async with connected(redis_server.url) as there:
        async with connected(redis_server.url) as here:
            work = Work()
            first = asyncio.create_task(SingleFlight(here, 60).run(b"k", work))
            await until(lambda: work.begun == 1)
        second = asyncio.create_task(SingleFlight(there, 60).run(b"k", work))

        await until(lambda: work.begun == 2)  # the first one can reach nobody any more
        work.may_end.set()
        assert await second == (b"answer", False)
        assert await first == (b"answer", False)


async def test_a_lock_is_held_as_long_as_the_work_takes(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_flight, "LOCK_SECONDS", 0.6)
    async with connected(redis_server.url) as here:
        work = Work()
        first = asyncio.create_task(SingleFlight(here, 60).run(b"k", work))
        await until(lambda: work.begun)
        commands = here.commands
        await until(lambda: here.commands >= commands + 5)

        assert b"lock" in redis_server.command("KEYS", "bridgehead:flight:*:lock")
        work.may_end.set()
        await first


async def test_work_that_gives_nothing_is_not_kept(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as here:
        work = Work(b"")
        work.may_end.set()
        shared = SingleFlight(here, 60)

        assert await shared.run(b"k", work) == (b"", False)
        assert await shared.run(b"k", work) == (b"", False)
        assert work.begun == 2


async def test_a_result_that_is_too_large_is_given_and_not_kept(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_flight, "MAX_RESULT_BYTES", 3)
    async with connected(redis_server.url) as here:
        for result, times in ((b"1234", 2), (b"123", 1)):
            work = Work(result)
            work.may_end.set()
            shared = SingleFlight(here, 60)
            found = [await shared.run(result, work) for _ in range(2)]

            assert found == [(result, False), (result, times == 1)]
            assert work.begun == times


async def test_a_lock_whose_grant_was_lost_on_the_way_is_still_ours(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_flight, "LOCK_SECONDS", 100 * PATIENCE)
    work = Work()
    work.may_end.set()
    async with (
        proxied(redis_server.port) as proxy,
        connected(proxy.through(redis_server.url)) as here,
    ):
        proxy.cut_answer_to = lambda sent: b"EVAL" in sent

        assert await SingleFlight(here, 60).run(b"k", work) == (b"answer", False)
        assert proxy.cuts == 1


async def test_without_redis_everybody_works_alone(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as here:
            server.kill()
            work = Work()
            work.may_end.set()

            assert await SingleFlight(here, 60).run(b"k", work) == (b"answer", False)
