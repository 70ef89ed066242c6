"""The rules of the budget, without an API: which limit counts, when it begins anew, what is told of it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.calling import budget as budget_module
from bridgehead.mercury.calling import usage_store
from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits, Cap
from bridgehead.mercury.calling.usage_store import FILE
from bridgehead.mercury.errors import MercuryError
from bridgehead.runtime import events
from bridgehead.runtime.events import Listener
from bridgehead.runtime.stores import ledger
from tests.mercury.calling.clock import DAY, NOON, GivenClock
from tests.mercury.calling.reserving import reserve
from tests.mercury.calling.test_budget import cancel_reserving, committed_by, refusal
from tests.mercury.calling.test_usage_store import open_store, rows
from tests.runtime.stores.test_ledger import opened
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

NO_LIMIT = Amounts()


@asynccontextmanager
async def budgeted(
    folder: Path, everybody: Amounts = NO_LIMIT, each_client: Amounts = NO_LIMIT
) -> AsyncIterator[Budget]:
    """Open a budget."""
    clock = GivenClock()
    async with open_store(folder, clock) as store:
        yield Budget(store, clock, BudgetLimits(everybody, each_client))


class Told:
    """The events of a test."""

    def __init__(self) -> None:
        self.listener = Listener()

    async def take(self) -> list[tuple[str, Any]]:
        """Return the kind and the percentage of each since the last time."""
        if not len(self.listener):
            return []
        return [(event.type, event.data["percent"]) for event in await self.listener.take(99)]


@pytest.fixture
def told() -> Iterator[Told]:
    found = Told()
    events.feed.join(found.listener)
    yield found
    events.feed.leave(found.listener)


# --- which limits there are --------------------------------------------------------------------------------


def test_a_day_ends_at_midnight_and_a_month_with_its_last_day() -> None:
    now = NOON + 3723.25  # the 21st of September, 13:02:03.25

    assert Cap(1.0, "SETTING").seconds_left(now) == DAY / 2 - 3723.25
    assert Cap(1.0, "SETTING", is_monthly=True).seconds_left(now) == 9.5 * DAY - 3723.25


async def test_each_limit_names_its_setting_its_period_and_whose_it_is(tmp_path: Path) -> None:
    limits = BudgetLimits(Amounts(1.0, 2.0), Amounts(3.0, 4.0), {"ci": Amounts(5.0, 6.0)})
    async with open_store(tmp_path, GivenClock()) as store:
        budget = Budget(store, GivenClock(), limits)

        everybody = [Cap(1.0, "MERCURY_BUDGET_USD"), Cap(2.0, "MERCURY_MONTH_BUDGET_USD", is_monthly=True)]
        assert budget.caps("ada") == [
            *everybody,
            Cap(3.0, "MERCURY_CLIENT_BUDGET_USD", client="ada"),
            Cap(4.0, "MERCURY_CLIENT_MONTH_BUDGET_USD", is_monthly=True, client="ada"),
        ]
        assert budget.caps("ci") == [
            *everybody,
            Cap(5.0, "MERCURY_CLIENT_BUDGETS", client="ci"),
            Cap(6.0, "MERCURY_CLIENT_BUDGETS", is_monthly=True, client="ci"),
        ]


async def test_without_limits_nothing_is_held_and_nothing_is_known(tmp_path: Path) -> None:
    async with budgeted(tmp_path) as budget:
        assert not budget.is_set
        assert await budget.reserve("me", None) is None
        budget.settle(None, 1.0)
        assert (await budget.spending("me"))[1] == []

    assert not (tmp_path / FILE).exists()


async def test_a_price_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    async with budgeted(tmp_path, Amounts(1.0)) as budget:
        with pytest.raises(MercuryError, match="price") as refused:
            await budget.reserve("me", None)

    assert refused.value.code == "PRICE_UNKNOWN"


async def test_who_is_refused_hears_how_long_to_wait_and_for_what(tmp_path: Path) -> None:
    async with budgeted(tmp_path, Amounts(1.0)) as budget:
        day = await refusal(budget, "me", 1.5)
    async with budgeted(tmp_path, Amounts(month=1.0)) as budget:
        month = await refusal(budget, "me", 1.5)

    assert "or wait for the next UTC day." in str(day)
    assert day.retry_after == DAY / 2
    assert "or wait for the next UTC month." in str(month)


# --- what is held, and what becomes of it ------------------------------------------------------------------


async def test_calls_that_end_together_are_all_settled(tmp_path: Path) -> None:
    async with budgeted(tmp_path, Amounts(10.0)) as budget:
        held = [await budget.reserve("me", 1.0) for _ in range(3)]
        for one in held[:2]:
            budget.settle(one, 0.25)
        budget.settle(held[2], None)  # nobody knows what it cost

        assert await committed_by(budget) == 1.5


async def test_a_settlement_is_written_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_store, "WRITE_SECONDS", 0.01)
    async with budgeted(tmp_path, Amounts(1.0)) as budget:
        budget.settle(await budget.reserve("me", 1.0), 0.25)
        await until(lambda: rows(tmp_path, "SELECT committed_usd FROM spending") == [(0.25,)])


async def test_a_settlement_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    async with budgeted(tmp_path, Amounts(10.0)) as budget:
        first, second = [await budget.reserve("me", 1.0) for _ in range(2)]
        budget.settle(first, 0.25)
        taken = budget.take()
        assert taken is not None
        taken[1]()
        assert await committed_by(budget) == 1.25

        budget.settle(second, 0.75)
        taken = budget.take()
        assert taken is not None
        budget.settle(await budget.reserve("me", 2.0), 1.0)
        taken[1]()
        assert await committed_by(budget) == 2.0
        assert budget.take() is None


async def test_a_call_that_is_refused_while_it_is_cancelled_gives_nothing_back(tmp_path: Path) -> None:
    async with budgeted(tmp_path, Amounts(1.0)) as budget:
        await budget.reserve("me", 0.5)
        await cancel_reserving(budget, tmp_path, 0.8)

        assert [await committed_by(budget) for _ in range(2)] == [0.5, 0.5]


async def test_what_is_left_is_never_less_than_nothing(tmp_path: Path) -> None:
    async with budgeted(tmp_path, Amounts(1.0)) as budget:
        budget.settle(await budget.reserve("me", 1.0), 1.5)  # it cost more than anybody thought
        (spending,) = (await budget.spending("me"))[1]

    assert (spending.committed, spending.left) == (1.5, 0.0)


# --- what is told ------------------------------------------------------------------------------------------


async def test_every_share_is_told_when_it_is_reached_and_only_then(tmp_path: Path, told: Told) -> None:
    async with budgeted(tmp_path, Amounts(2.0, 100.0)) as budget:
        found = []
        for amount in (0.98, 0.02, 0.6, 0.2, 0.2):
            await budget.reserve("me", amount)
            await budget.check()
            await budget.check()
            found.append(await told.take())
        await refusal(budget, "me", 0.01)
        await refusal(budget, "me", 0.01)

        percents = [[], [50.0], [80.0], [90.0], [100.0]]
        assert found == [[("budget.threshold", percent) for percent in those] for those in percents]
        assert await told.take() == [("budget.refused", 100.0)]
        assert {period: one.committed for period, one in budget.latest.items()} == {"day": 2.0, "month": 2.0}


async def test_an_event_says_whose_budget_it_is_and_what_is_left(tmp_path: Path, told: Told) -> None:
    async with budgeted(tmp_path, Amounts(), Amounts(month=3.0)) as budget:
        await budget.reserve("ada", 1.7500001)
        await budget.spending("ada")
        assert len(told.listener) == 1
        (event,) = await told.listener.take(1)

        assert event.data == {
            "bridge": "mercury",
            "period": "month",
            "client": "ada",
            "percent": 58.3,
            "limit_usd": 3.0,
            "left_usd": 1.25,
        }
        assert budget.latest == {}  # which is everybody's


async def test_a_budget_of_nothing_is_used_up_from_the_start(tmp_path: Path, told: Told) -> None:
    async with budgeted(tmp_path, Amounts(0.0)) as budget:
        await budget.check()

    assert await told.take() == [("budget.threshold", 100.0)]


async def test_two_budgets_are_told_apart_and_each_once(tmp_path: Path, told: Told) -> None:
    async with budgeted(tmp_path, Amounts(1.0, 2.0)) as budget:
        await budget.reserve("me", 1.0)
        for _ in range(3):
            await budget.check()

    assert await told.take() == [("budget.threshold", 100.0), ("budget.threshold", 50.0)]


async def test_what_was_told_is_remembered_of_so_many_clients(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "_MOST_TOLD", 2)
    async with budgeted(tmp_path, Amounts(), Amounts(1.0)) as budget:
        for client in ("ada", "bob", "ada", "cleo", "ada"):
            await refusal(budget, client, 1.5)

    assert len(await told.take()) == 4  # ada is told anew once too many were there


# --- with other replicas -----------------------------------------------------------------------------------


async def test_replicas_count_together_by_day_and_month_and_client(
    tmp_path: Path, redis_server: RedisServer, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "RESTORE_SECONDS", 0.1)
    clock = GivenClock()
    limits = BudgetLimits(Amounts(2.0, 3.0), Amounts(1.0), {"ci": Amounts(month=0.5)})
    async with opened(redis_server) as shared, open_store(tmp_path, clock) as store:
        one, other = [Budget(store, clock, limits, shared) for _ in range(2)]
        held = await reserve(one, shared, "ada", 1.0)
        assert held is not None
        assert held.name
        assert one.latest["day"].committed == 1.0
        assert "The day's budget of ada of $1 has $0.000000 left" in str(
            await refusal(other, "ada", 0.5, shared)
        )
        assert [kind for kind, _ in await told.take()] == ["budget.threshold"] * 2 + ["budget.refused"]

        one.settle(held, 0.25)
        await until(lambda: not shared._unsettled)  # noqa: SLF001 - Redis has heard of it
        await reserve(other, shared, "ada", 0.5)
        await reserve(other, shared, "ci", 0.5)
        assert "The month's budget of ci" in str(await refusal(one, "ci", 0.1, shared))
        today, found = await one.spending("ci")
        assert today == "2026-09-21"
        assert [(spending.cap.period, spending.committed) for spending in found] == [
            ("day", 1.25),
            ("month", 1.25),
            ("month", 0.5),
        ]
        clock.time += DAY
        assert [spending.committed for spending in (await one.spending("ci"))[1]] == [0.0, 1.25, 0.5]

    assert not (tmp_path / FILE).exists()


async def test_a_look_without_a_client_is_at_the_budgets_of_everybody(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    clock, limits = GivenClock(), BudgetLimits(Amounts(2.0, 3.0), Amounts(0.5, 0.6))
    async with opened(redis_server) as shared, open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, limits, shared)
        await budget.check()

    assert {period: spending.cap.limit for period, spending in budget.latest.items()} == {
        "day": 2.0,
        "month": 3.0,
    }


async def test_a_call_that_nothing_limits_commits_nothing(tmp_path: Path) -> None:
    clock, limits = GivenClock(), BudgetLimits(clients={"ada": Amounts(1.0)})
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, limits)

        assert await budget.reserve("bob", 0.5) is None
        assert await budget.reserve("ada", 0.25) is not None
        assert await committed_by(budget, "ada") == pytest.approx(0.25)
        assert budget.claim("ada", 0.25) is None, "which is for money that replicas share"
    assert rows(tmp_path, "SELECT client FROM spending") == [("ada",)]


async def test_replicas_commit_nothing_for_a_call_that_nothing_limits(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    clock, limits = GivenClock(), BudgetLimits(clients={"ada": Amounts(1.0)})
    async with opened(redis_server) as shared, open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, limits, shared)

        assert budget.claim("bob", 0.5) is None
        assert budget.claim("ada", 0.5) is not None
