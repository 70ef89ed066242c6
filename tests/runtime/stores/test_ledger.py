"""The money of all replicas: never more than the budget, whatever dies when."""

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import ledger as ledger_module
from bridgehead.runtime.stores.joint import Joint
from bridgehead.runtime.stores.ledger import (
    RESTORE_SECONDS,
    Committed,
    Counter,
    Expense,
    MoneyClaim,
    SharedLedger,
    counters_of,
    to_millionths,
)
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
    return (await ledger.look((counter,)))[counter]


async def reserve(
    ledger: SharedLedger, dollars: float, limit: float = 1.0, client: str = "ada"
) -> tuple[str, Committed]:
    found: list[Committed] = []
    claim = MoneyClaim(ledger, Expense(DAY, client, dollars, {TODAY: limit}), found.append)
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
            with pytest.raises(StorageError, match="cannot be checked, so no money is spent"):
                await committed(ledger)


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
            await until(lambda: not ledger._telling)  # noqa: SLF001 - what is over is not kept


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


# --- what is kept, and for how long ------------------------------------------------------------------------


def test_replicas_have_time_to_tell_a_restarted_redis_what_they_know() -> None:
    assert RESTORE_SECONDS >= 1


async def test_totals_and_reservations_are_kept_for_longer_than_a_month(redis_server: RedisServer) -> None:
    async with opened(redis_server) as ledger:
        name, _ = await reserve(ledger, 0.25)

    month = 31 * 24 * 60 * 60
    for key in (*(one.key for one in counters_of(DAY, "ada")), f"bridgehead:budget:reserved:{name}"):
        assert key.startswith("bridgehead:budget:")
        assert int(redis_server.command("TTL", key)[1:]) > month


async def test_a_restarted_redis_is_told_every_total_of_many_clients(tmp_path: Path) -> None:
    clients = [f"client-{number}" for number in range(60)]
    with running_redis(tmp_path) as server:
        async with opened(server) as ledger:
            for client in clients:
                await reserve(ledger, 0.01, client=client)
            server.kill()
            server.start()
            for client in (clients[0], clients[-1]):
                key = Counter(DAY, client).key
                await until(lambda: b"10000" in server.command("GET", key))  # noqa: B023 - awaited here


async def test_a_settlement_is_told_without_anybody_waiting_for_it(redis_server: RedisServer) -> None:
    async with opened(redis_server) as ledger:
        name, _ = await reserve(ledger, 0.25)
        ledger.settle(name, DAY, "ada", 0.1)
        assert ledger._telling is not None  # noqa: SLF001 - a task that nobody holds may be collected

        key = Counter(DAY, "ada").key
        await until(lambda: b"100000" in redis_server.command("GET", key))
        await until(lambda: ledger._telling is None)  # noqa: SLF001 - the same


async def test_a_ledger_that_has_ended_listens_no_more_though_its_connection_is_others_too(
    redis_server: RedisServer,
) -> None:
    redis = Redis(redis_server.url, PATIENCE)
    await redis.start()
    ledger = SharedLedger(redis)
    await ledger.start()
    await until(lambda: b"budget" in redis_server.command("PUBSUB", "CHANNELS"))
    await ledger.stop()

    await until(lambda: b"budget" not in redis_server.command("PUBSUB", "CHANNELS"))
    assert redis.is_up
    await redis.close()


async def test_a_limit_of_cents_is_one_of_cents(redis_server: RedisServer) -> None:
    async with opened(redis_server) as ledger:
        assert (await reserve(ledger, 0.02, limit=0.03))[1].exceeded is None
        assert (await reserve(ledger, 0.02, limit=0.03))[1].exceeded == TODAY


async def test_what_was_spent_last_is_written_before_a_ledger_ends(redis_server: RedisServer) -> None:
    async with opened(redis_server) as ledger:
        name, _ = await reserve(ledger, 0.5)
        ledger.settle(name, DAY, "ada", 0.1)

    async with opened(redis_server) as other:
        assert await committed(other) == pytest.approx(0.1)


async def test_a_ledger_that_ends_without_redis_leaves_nothing_running(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server) as ledger:
            name, _ = await reserve(ledger, 0.5)
            server.kill()
            ledger.settle(name, DAY, "ada", 0.1)
            telling = ledger._telling  # noqa: SLF001 - nobody waits for it
        assert telling is not None
        await until(telling.done)


async def test_of_very_many_totals_those_that_were_seen_last_are_known(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_MOST_SEEN", 6)
    async with opened(redis_server) as ledger:
        for client in ("ada", "bob", "eve"):
            await reserve(ledger, 0.01, client=client)

        known = dict(ledger._seen)  # noqa: SLF001 - what a restarted Redis would be told
    assert known == {
        **dict.fromkeys((TODAY, MONTH), 30000),
        **{one: 10_000 for client in ("bob", "eve") for one in counters_of(DAY, client)[2:]},
    }


async def test_beyond_what_can_be_remembered_a_settlement_leaves_the_worst_case(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_MOST_UNSETTLED", 1)
    async with opened(redis_server) as ledger:
        first, second = (await reserve(ledger, 0.4))[0], (await reserve(ledger, 0.4))[0]
        ledger.settle(first, DAY, "ada", 0.1)
        ledger.settle(second, DAY, "ada", 0.1)

        async with asyncio.timeout(PATIENCE):
            while await committed(ledger) != pytest.approx(0.5):
                await asyncio.sleep(0.005)


async def test_a_ledger_that_cannot_write_what_was_spent_says_so_once_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledger_module, "_AGAIN_SECONDS", 0.005)
    with running_redis(tmp_path) as server:
        async with opened(server) as ledger:
            name, _ = await reserve(ledger, 0.5)
            server.kill()
            await until(lambda: not ledger.redis.is_up)
            tries, run = 0, ledger.redis.run

            def count(*given: Any) -> asyncio.Future[Any]:
                nonlocal tries
                tries += 1
                return run(*given)

            monkeypatch.setattr(ledger.redis, "run", count)
            caplog.clear()
            ledger.settle(name, DAY, "ada", 0.1)
            await until(lambda: tries >= 3)
            server.start()
            await until(lambda: not ledger._unsettled)  # noqa: SLF001 - settling is not waited for

    said = [record.message for record in caplog.records if record.name == "bridgehead.stores.ledger"]
    assert said == ["what was spent could not be written to redis yet"]


async def test_a_replica_knows_what_its_settlements_have_changed(redis_server: RedisServer) -> None:
    async with opened(redis_server) as one, opened(redis_server) as other:
        name, _ = await reserve(one, 0.25)
        one.settle(name, DAY, "ada", 0.0)
        await until(lambda: not one._unsettled)  # noqa: SLF001 - settling is not waited for
        assert set(one._seen.values()) == {0}  # noqa: SLF001 - what a restarted Redis would be told
        name, _ = await reserve(one, 0.25)
        other.settle(name, DAY, "ada", 0.5)
        await until(lambda: not other._unsettled)  # noqa: SLF001 - the same

        known = dict(other._seen)  # noqa: SLF001 - the same
    assert known == dict.fromkeys(counters_of(DAY, "ada"), 250_000)


def test_every_total_and_every_ceiling_has_a_key_of_its_own() -> None:
    counters = counters_of(DAY, "ada")

    assert len({key for one in counters for key in (one.key, one.ceiling_key)}) == 2 * len(counters)
