"""Claims: money that something needs before it may begin, asked for, judged and given back."""

import asyncio

import pytest

from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import StoreError, StoreUnavailable
from bridgehead.runtime.stores import ledger as ledger_module
from bridgehead.runtime.stores.ledger import Committed, Counter, Expense, MoneyClaim, SharedLedger
from tests.runtime.stores.test_ledger import DAY, TODAY, committed, opened, reserve
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE


@pytest.fixture(autouse=True)
def _restored_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "RESTORE_SECONDS", 0.5)


def make_claim(ledger: SharedLedger, judged: list[Committed]) -> MoneyClaim:
    return MoneyClaim(ledger, Expense(DAY, "ada", 0.25, {TODAY: 1.0}), judged.append)


async def test_a_claim_waits_for_a_restarted_redis_only_so_often(redis_server: RedisServer) -> None:
    judged: list[Committed] = []
    async with opened(redis_server) as ledger:
        one = make_claim(ledger, judged)

        assert [one.accept([1500, -1, 0, 0, 0, 0], 0.0) for _ in range(2)] == [1.5, 1.5]
        with pytest.raises(StorageError, match="keeps restarting"):
            one.accept([1500, -1, 0, 0, 0, 0], 0.0)
    assert judged == []


async def test_a_redis_that_is_new_commits_nothing_until_it_was_told(redis_server: RedisServer) -> None:
    async with opened(redis_server) as ledger:
        redis_server.command("FLUSHALL")
        ((wait, exceeded, *_),) = await ledger.redis.run_steps([make_claim(ledger, []).prepare()])

        assert 0 < wait <= 500, "milliseconds"
        assert exceeded == -1
        assert await committed(ledger) == 0.0


async def test_a_claim_that_was_tried_is_judged_by_what_is_committed_then(redis_server: RedisServer) -> None:
    judged: list[Committed] = []
    async with opened(redis_server) as ledger:
        one = make_claim(ledger, judged)

        assert one.accept([0, 0, 250_000, 500_000, 1, 2], 0.0) == 0.0
        one.accept([0, 4, 0, 0, 0, 0], 0.0)

    assert list(judged[0].dollars.values()) == [0.25, 0.5, 1e-06, 2e-06]
    assert (judged[0].exceeded, judged[0].wait) == (None, 0.0)
    assert judged[1].exceeded == Counter("2026-11", "ada")


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (StoreUnavailable("gone"), "The budget cannot be checked, so no money is spent: gone"),
        (StoreError("full"), "full"),
    ],
)
async def test_without_an_answer_no_money_is_spent(
    redis_server: RedisServer, problem: Exception, said: str
) -> None:
    judged: list[Committed] = []
    async with opened(redis_server) as ledger:
        with pytest.raises(type(problem) if said == "full" else StorageError, match=said):
            make_claim(ledger, judged).accept(problem, 0.0)
    assert judged == []


async def test_a_claim_is_tried_under_a_new_name_each_time_and_given_back_by_its_last(
    redis_server: RedisServer,
) -> None:
    async with opened(redis_server) as ledger:
        await reserve(ledger, 0.0)  # by now Redis was told all there is
        one = make_claim(ledger, [])
        one.give_back()  # nothing was tried
        assert not ledger._unsettled  # noqa: SLF001
        one.prepare()
        first = one.name
        await ledger.redis.run_steps([one.prepare()])

        assert first != one.name
        assert await committed(ledger) == pytest.approx(0.25)
        one.give_back()
        async with asyncio.timeout(PATIENCE):
            while await committed(ledger):
                await asyncio.sleep(0.005)
