"""The money of all replicas with a database: never more than the budget, whatever forgets or dies when."""

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mercury.database.allotments import AllotmentDatabase
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import allotments, allotted_ledger
from bridgehead.runtime.stores import ledger as ledger_module
from bridgehead.runtime.stores.allotted_ledger import AllottedLedger
from bridgehead.runtime.stores.joint import Joint
from bridgehead.runtime.stores.ledger import Counter, Expense, MoneyClaim, SharedLedger
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores import test_ledger
from tests.support.redis_server import RedisServer, faulty, running_redis, wait_until
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("_patient")

DAY = "2026-11-16"
TODAY, ADAS = Counter(DAY), Counter(DAY, "ada")
LIMIT = 1.0
AMOUNT = 0.01
HEADROOM = 4 * AMOUNT
"""What Redis has at hand beyond what a call waits for."""


@asynccontextmanager
async def opened(url: str, database: str) -> AsyncIterator[AllottedLedger]:
    ledger = AllottedLedger(Redis(url, PATIENCE), AllotmentDatabase(database))
    await ledger.start()
    try:
        yield ledger
    finally:
        await ledger.stop()


async def reserve(ledger: SharedLedger, dollars: float = AMOUNT, client: str = "ada", **limits: float) -> str:
    """Return the name of a reservation; nothing where the budget does not allow it."""
    found: list[bool] = []
    bounds = {TODAY: limits.get("limit", LIMIT), **({ADAS: limits["own"]} if "own" in limits else {})}
    claim = MoneyClaim(
        ledger, Expense(DAY, client, dollars, bounds), lambda committed: found.append(not committed.exceeded)
    )
    await Joint(ledger.redis, [claim]).obtain(math.inf)
    return claim.name if found[-1] else ""


async def spend_all(ledger: SharedLedger, dollars: float = AMOUNT) -> int:
    """Reserve until the budget is used up, and return how often that was."""
    count = 0
    while await reserve(ledger, dollars):
        count += 1
    return count


async def committed(ledger: SharedLedger, counter: Counter = TODAY) -> float:
    return (await ledger.look((counter,)))[counter]


def forget_all(server: RedisServer) -> None:
    server.kill()
    server.start()


def demote(server: RedisServer, master: RedisServer) -> None:
    """Let a server copy another, and wait until it has."""
    server.command("REPLICAOF", "127.0.0.1", str(master.port))
    wait_until(lambda: b"master_link_status:up" in server.command("INFO", "replication"))


def promote(server: RedisServer, master: RedisServer) -> None:
    """Let a server take its master's place, once it has all that its master has right now."""
    wait_until(lambda: server.command("DBSIZE") == master.command("DBSIZE"))
    server.command("REPLICAOF", "NO", "ONE")
    wait_until(server.is_master)


# --- without a failure -------------------------------------------------------------------------------------


async def test_replicas_together_commit_all_of_the_budget_and_no_more(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as one, opened(redis_server.url, migrated_url) as other:
        asked = [reserve(ledger, 0.03) for _ in range(30) for ledger in (one, other)]
        names = await asyncio.gather(*asked)

        assert sum(map(bool, names)) == 33
        assert await committed(one) == await committed(other) == pytest.approx(0.99)


async def test_what_was_not_spent_can_be_spent_by_others(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as one, opened(redis_server.url, migrated_url) as other:
        name = await reserve(one, 0.9)
        assert not await reserve(other, 0.2)
        one.settle(name, DAY, "ada", 0.1)
        one.settle(name, DAY, "ada", 0.1)
        await until(lambda: not one._unsettled)  # noqa: SLF001 - settling is not waited for

        assert await committed(other) == pytest.approx(0.1)
        assert await reserve(other, 0.9)


async def test_every_limit_of_a_call_counts(redis_server: RedisServer, migrated_url: str) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        assert await reserve(ledger, 0.3, own=0.5)
        assert not await reserve(ledger, 0.3, own=0.5)
        assert await reserve(ledger, 0.3, client="bob")
        assert await committed(ledger, ADAS) == pytest.approx(0.3)


async def test_a_limit_that_was_changed_counts_from_what_was_spent(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        assert await reserve(ledger, 0.5, limit=0.6)
        assert not await reserve(ledger, 0.2, limit=0.6)
        assert await reserve(ledger, 0.2, limit=0.8)
        assert not await reserve(ledger, 0.01, limit=0.3)
        assert not await reserve(ledger, 0.0, limit=0.3), "it is passed already"
        assert not await reserve(ledger, 0.01, limit=0.0)


async def test_what_was_spent_before_there_was_a_database_counts(
    redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "RESTORE_SECONDS", 0.1)
    async with test_ledger.opened(redis_server) as before:
        assert await reserve(before, 0.7)
    async with opened(redis_server.url, migrated_url) as ledger:
        assert not await reserve(ledger, 0.4)
        assert await reserve(ledger, 0.3)


async def test_money_of_a_caller_that_left_is_given_back(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        for turns in range(8):
            leaving = asyncio.create_task(reserve(ledger, 0.1))
            for _ in range(turns):
                await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.wait([leaving])
        await until(lambda: not ledger._unsettled)  # noqa: SLF001 - settling is not waited for

        assert await reserve(ledger, 1.0)


async def test_what_calls_held_and_did_not_spend_is_not_lost_with_redis(
    redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_GIVE_BACK_SECONDS", 0.01)
    async with opened(redis_server.url, migrated_url) as ledger:
        store = AllotmentDatabase(migrated_url)
        names = await asyncio.gather(*(reserve(ledger, 0.08) for _ in range(10)))
        assert (await store.look([TODAY]))[TODAY] >= 800_000
        for name in names:
            ledger.settle(name, DAY, "ada", 0.001)
        async with asyncio.timeout(PATIENCE):
            while (await store.look([TODAY]))[TODAY] > 120_000:
                await asyncio.sleep(0.01)
        await store.close()
        redis_server.command("FLUSHALL")

        assert await reserve(ledger, 0.85)


# --- what is forgotten -------------------------------------------------------------------------------------


async def test_a_redis_and_its_only_replica_that_die_together_do_not_pass_the_budget(
    tmp_path: Path, migrated_url: str
) -> None:
    spent, deaths = 0.0, 0
    with running_redis(tmp_path) as server:
        while deaths < 40:
            async with opened(server.url, migrated_url) as ledger:
                if not await reserve(ledger):
                    break
                spent += AMOUNT  # and nobody is told: Redis forgets it, and the replica ends
                forget_all(server)
                deaths += 1

    assert spent <= LIMIT
    assert deaths >= math.floor(LIMIT / (AMOUNT + HEADROOM)), "no more is lost than what was at hand"


async def test_a_redis_that_was_emptied_does_not_pass_the_budget(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        assert await reserve(ledger, 0.6)
        redis_server.command("FLUSHALL")

        assert await committed(ledger) >= 0.6
        assert not await reserve(ledger, 0.41)


async def test_a_call_after_a_restart_of_redis_does_not_wait_for_other_replicas(
    tmp_path: Path, migrated_url: str
) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server.url, migrated_url) as ledger:
            assert await reserve(ledger)
            forget_all(server)
            await until(lambda: ledger.redis.is_up)
            step = MoneyClaim(ledger, Expense(DAY, "ada", AMOUNT, {TODAY: LIMIT}), print).prepare()
            [[state, *_]] = await ledger.redis.run_steps([step])

            assert state == 1, "it lacks a portion"
            assert await reserve(ledger)


async def test_the_budget_holds_while_replicas_and_redis_die_at_random(
    tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_GIVE_BACK_SECONDS", 0.001)
    monkeypatch.setattr(allotted_ledger, "SURPLUS", 1)
    monkeypatch.setattr(allotted_ledger, "ENOUGH", 0)
    draw = random.Random(11)  # noqa: S311 - the same faults each time
    spent, losses = 0.0, 0
    with running_redis(tmp_path) as server:
        for _ in range(12):
            async with opened(server.url, migrated_url) as one, opened(server.url, migrated_url) as other:
                for _ in range(draw.randrange(1, 4)):
                    names = await asyncio.gather(*(reserve(draw.choice((one, other))) for _ in range(4)))
                    for name in filter(None, names):
                        cost = draw.uniform(0.0, AMOUNT)
                        spent += cost
                        draw.choice((one, other)).settle(name, DAY, "ada", cost)
                    if draw.random() < 0.4:
                        losses += 1
                        server.command("FLUSHALL")
                    assert spent <= LIMIT
                for ledger in (one, other):
                    if draw.random() < 0.5:
                        ledger._unsettled.clear()  # noqa: SLF001 - it dies before it can settle
            losses += 1
            forget_all(server)
        async with opened(server.url, migrated_url) as last:
            spent += AMOUNT * await spend_all(last)

    assert losses > 10
    assert spent <= LIMIT


async def test_a_copy_that_lacks_the_last_writes_does_not_pass_the_budget(
    tmp_path: Path, migrated_url: str
) -> None:
    with running_redis(tmp_path) as old, running_redis(tmp_path) as new:
        async with opened(old.url, migrated_url) as left_behind, opened(new.url, migrated_url) as moved:
            demote(new, old)
            count = sum([bool(await reserve(left_behind)) for _ in range(10)])
            promote(new, old)
            count += sum([bool(await reserve(left_behind)) for _ in range(10)])
            for _ in range(20):  # the old master is still there for one of them
                count += bool(await reserve(moved)) + bool(await reserve(left_behind))
            count += await spend_all(moved) + await spend_all(left_behind)

    assert count * AMOUNT <= LIMIT + 1e-9
    assert count * AMOUNT >= LIMIT - 2 * HEADROOM


async def test_a_master_that_was_a_copy_meanwhile_is_another_one(tmp_path: Path, migrated_url: str) -> None:
    with running_redis(tmp_path) as one, running_redis(tmp_path) as other:
        async with opened(one.url, migrated_url) as ledger:
            demote(other, one)
            assert await reserve(ledger)
            promote(other, one)
            count = 1 + sum([bool(await reserve(ledger)) for _ in range(20)])
            demote(one, other)  # it forgets those, and nobody asked the other for money
            promote(one, other)
            count += await spend_all(ledger)

    assert count * AMOUNT <= LIMIT + 1e-9


async def test_a_settlement_of_what_another_memory_had_committed_changes_nothing(
    tmp_path: Path, migrated_url: str
) -> None:
    with running_redis(tmp_path) as old, running_redis(tmp_path) as new:
        async with opened(old.url, migrated_url) as left_behind, opened(new.url, migrated_url) as moved:
            demote(new, old)
            name = await reserve(left_behind, 0.2)
            promote(new, old)
            assert await reserve(moved)
            before = await committed(moved)
            for ledger in (left_behind, moved):
                ledger.settle(name, DAY, "ada", 0.0)
                await until(lambda: not ledger._unsettled)  # noqa: B023, SLF001 - awaited here

            assert await committed(moved) == before
            assert await committed(left_behind) == 0.0


async def test_a_total_that_was_evicted_is_not_taken_for_nothing(
    redis_server: RedisServer, migrated_url: str
) -> None:
    async with opened(redis_server.url, migrated_url) as ledger:
        name = await reserve(ledger, 0.5)
        redis_server.command("DEL", TODAY.key)
        ledger.settle(name, DAY, "ada", 0.4)
        await until(lambda: not ledger._unsettled)  # noqa: SLF001 - settling is not waited for

        assert not await reserve(ledger, 0.61)


async def test_a_portion_whose_delivery_was_not_answered_counts_once(
    redis_server: RedisServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allotments, "_TURN_SECONDS", 0.5)  # its end is not heard of either
    async with faulty(redis_server) as proxy:
        redis, store = Redis(proxy.url, 0.5), AllotmentDatabase(migrated_url)
        ledger = AllottedLedger(redis, store)
        await ledger.start()
        allot = store.allot

        async def allot_and_fall_silent(*given: object) -> object:
            found = await allot(*given)  # type: ignore[arg-type]
            proxy.fault = "mute"
            return found

        store.allot = allot_and_fall_silent  # type: ignore[assignment, method-assign]
        with pytest.raises(StorageError, match="no money is spent: Redis cannot be used"):
            await reserve(ledger, 0.1)
        store.allot = allot  # type: ignore[method-assign]
        proxy.fault = "none"
        proxy.cut()
        await until(lambda: redis.is_up)
        count = await spend_all(ledger, 0.1)
        await ledger.stop()

    assert count == 10, "nothing was counted twice, and nothing was lost"
