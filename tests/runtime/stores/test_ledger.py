"""The money of all replicas: never more than the budget, whatever dies when."""

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import ledger as ledger_module
from bridgehead.runtime.stores.joint import Joint
from bridgehead.runtime.stores.ledger import Committed, Counter, SharedLedger, to_millionths
from bridgehead.runtime.stores.redis import Redis
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE, until

DAY = "2026-11-16"
TODAY, MONTH, ADAS = Counter(DAY), Counter("2026-11"), Counter(DAY, "ada")


@pytest.fixture(autouse=True)
def _restored_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "RESTORE_SECONDS", 0.5)


@asynccontextmanager
async def opened(server: RedisServer) -> AsyncIterator[SharedLedger]:
    ledger = SharedLedger(Redis(server.url, PATIENCE))
    await ledger.start()
    try:
        yield ledger
    finally:
        await ledger.stop()


async def committed(ledger: SharedLedger, counter: Counter = TODAY) -> float:
    return (await ledger.look(DAY, "ada")).dollars[counter]


async def reserve(ledger: SharedLedger, dollars: float, limit: float = 1.0) -> tuple[str, Committed]:
    found: list[Committed] = []
    claim = ledger.claim(DAY, "ada", dollars, {TODAY: limit}, found.append)
    await Joint(ledger.redis, [claim]).obtain(math.inf)
    return claim.name, found[0]


async def test_replicas_together_commit_no_more_than_one_would(redis_server: RedisServer) -> None:
    async with opened(redis_server) as one, opened(redis_server) as other:
        asked = [reserve(ledger, 0.03) for _ in range(30) for ledger in (one, other)]
        answers = await asyncio.gather(*asked)

        passed = [name for name, found in answers if found.exceeded is None]
        assert len(passed) == 33
        assert {found.exceeded for _, found in answers} == {None, TODAY}
        assert await committed(one) == await committed(other) == pytest.approx(0.99)
        assert await committed(one, MONTH) == await committed(one, ADAS) == pytest.approx(0.99)


async def test_what_was_not_spent_can_be_spent_by_others(redis_server: RedisServer) -> None:
    async with opened(redis_server) as one, opened(redis_server) as other:
        name, _ = await reserve(one, 0.9)
        assert (await reserve(other, 0.2))[1].exceeded == TODAY
        one.settle(name, DAY, "ada", 0.1)
        one.settle(name, DAY, "ada", 0.1)
        await until(lambda: not one._unsettled)  # noqa: SLF001 - settling is not waited for

        assert await committed(other) == pytest.approx(0.1)
        assert (await reserve(other, 0.2))[1].exceeded is None


async def test_without_redis_no_money_is_committed(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server) as ledger:
            await reserve(ledger, 0.1)
            server.kill()

            with pytest.raises(StorageError, match="cannot be checked, so no money is spent"):
                await reserve(ledger, 0.1)


async def test_a_redis_that_lost_its_memory_is_told_before_money_is_committed(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server) as one, opened(server) as other:
            await reserve(one, 0.2)
            await reserve(other, 0.5)
            server.kill()
            server.start()

            assert (await reserve(one, 0.4))[1].exceeded == TODAY, "the other one knew of more"
            assert await committed(one) == pytest.approx(0.7)


async def test_what_was_settled_while_redis_was_gone_is_settled_when_it_is_back(tmp_path: Path) -> None:
    with running_redis(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
        async with opened(server) as ledger:
            name, _ = await reserve(ledger, 0.5)
            server.kill()
            ledger.settle(name, DAY, "ada", 0.1)
            server.start()

            await until(lambda: not ledger._unsettled)  # noqa: SLF001 - settling is not waited for
            assert await committed(ledger) == pytest.approx(0.1)


async def test_a_replica_that_heard_of_a_restart_before_it_could_write_tells_what_it_knows_all_the_same(
    tmp_path: Path,
) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server) as ledger:
            name, _ = await reserve(ledger, 0.5)
            await ledger.redis.notices.stop()  # nothing tells it a second time
            server.kill()
            await until(lambda: not ledger.redis.is_up)
            ledger._tell_all()  # noqa: SLF001 - as the other connection does, which may be there first
            ledger.settle(name, DAY, "ada", 0.2)
            await asyncio.sleep(0)
            server.start()

            await until(lambda: server.command("GET", TODAY.key) == b"$6\r\n500000\r\n")


async def test_what_a_restarted_redis_had_acknowledged_and_lost_is_not_forgotten(tmp_path: Path) -> None:
    with running_redis(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
        async with opened(server) as ledger:
            await reserve(ledger, 0.1)
            old = {key: server.command("GET", key) for key in (TODAY.key, MONTH.key, ADAS.key)}
            await reserve(ledger, 0.8)
            for key, answer in old.items():  # what a crash does to writes that were not on the disk yet
                server.command("SET", key, answer.decode().split("\r\n")[1])
            server.kill()
            server.start()

            assert (await reserve(ledger, 0.2))[1].exceeded == TODAY


async def test_money_of_a_caller_that_left_is_given_back(redis_server: RedisServer) -> None:
    async with opened(redis_server) as ledger:
        await reserve(ledger, 0.1)
        leaving = asyncio.create_task(reserve(ledger, 0.5))
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await until(lambda: not ledger._unsettled)  # noqa: SLF001 - settling is not waited for

        assert await committed(ledger) == pytest.approx(0.1)


async def test_the_budget_holds_while_replicas_and_redis_die(tmp_path: Path) -> None:
    draw = random.Random(7)  # noqa: S311 - the same faults each time
    spent = 0.0
    with running_redis(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
        for turn in range(4):
            async with opened(server) as one, opened(server) as other:
                for _ in range(40):
                    ledger = draw.choice((one, other))
                    name, found = await reserve(ledger, 0.02)
                    if found.exceeded is None:
                        cost = draw.uniform(0.0, 0.02)
                        spent += cost
                        if draw.random() < 0.7:  # the others die before they can settle
                            ledger.settle(name, DAY, "ada", cost)
                assert spent <= await committed(one) + 1e-4 or one._unsettled or other._unsettled  # noqa: SLF001
            if turn % 2:
                server.kill()
                server.start()

    assert 0.3 < spent <= 1.0


def test_money_is_rounded_up() -> None:
    assert [to_millionths(amount) for amount in (0.0, 1e-9, 0.000001, 0.1 + 0.2, 1.0)] == [
        0,
        1,
        1,
        300_000,
        1_000_000,
    ]
