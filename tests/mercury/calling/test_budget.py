"""The budget: reserved before a send, booked at its end, never passed, and shared by all processes."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bridgehead.mercury.calling import budget as budget_module
from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits, Cap, Spending, State
from bridgehead.mercury.calling.sqlite_usage import FILE
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime import events
from bridgehead.runtime.events import Listener
from tests.mercury.calling.books import DAY, NO_LIMIT, NOON, OpenBooks, Payer, open_sqlite
from tests.mercury.calling.conftest import Open
from tests.mercury.process import BridgeProcess, bridge_process
from tests.support.clock import Clock
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of money, in 8 words"}], "max_tokens": 20}
PROMPT_PRICE, COMPLETION_PRICE = 2.5e-7, 7.5e-7
WORST = 100 * PROMPT_PRICE + 20 * COMPLETION_PRICE
"""What one call can cost at most, roughly: its body has about a hundred bytes."""


async def report(client: BridgeProcess) -> Any:
    return (await client.call("mercury_usage"))["structuredContent"]


async def refusal(payer: Payer, client: str, usd: float) -> MercuryError:
    with pytest.raises(MercuryError) as refused:
        await payer.reserve(client, usd)
    assert refused.value.code == "BUDGET_EXCEEDED"
    return refused.value


# --- as a user sees it -------------------------------------------------------------------------------------


async def test_a_call_that_could_pass_the_budget_does_not_go_out(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="0.000001") as client:
        error = await client.error(CHAT, ASK)

    assert (error["type"], error["code"]) == ("rate_limit", "BUDGET_EXCEEDED")
    assert 0 < error["retry_after"] <= 86_400
    assert "MERCURY_BUDGET_USD" in error["message"]
    assert not api.requests.to("/chat/completions")


async def test_what_a_call_cost_replaces_what_was_held(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        cost = (await client.call(CHAT, ASK))["structuredContent"]["metadata"]["cost_usd"]
        budget = (await report(client))["budget"]

    assert 0 < cost < WORST
    assert budget["committed_usd"] == pytest.approx(cost, abs=1e-9)
    assert budget["left_usd"] == pytest.approx(1 - cost, abs=1e-8)
    assert budget["settled_usd"] == budget["committed_usd"]


async def test_many_calls_at_once_never_pass_the_budget(api: Simulator, tmp_path: Path) -> None:
    limit = 6 * WORST
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=f"{limit:.9f}") as client:
        answers = [client.start(CHAT, ASK)[1] for _ in range(60)]
        results = [(await answer)["result"] for answer in answers]
        told = await report(client)

    spent = told["since_start"]["total"]["cost_usd"]
    refused = [result for result in results if "isError" in result]
    assert refused
    assert len(refused) < len(results)
    assert 0 < spent <= limit
    assert told["budget"]["settled_usd"] == pytest.approx(spent)


async def test_processes_of_one_user_share_the_day(api: Simulator, tmp_path: Path) -> None:
    limit = f"{2.2 * WORST:.9f}"
    async with (
        bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=limit) as one,
        bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=limit) as other,
    ):
        clients = [one, other] * 10
        results = await asyncio.gather(*(client.call(CHAT, ASK) for client in clients))
        spent = [(await report(client))["since_start"]["total"]["cost_usd"] for client in (one, other)]
        told = await report(one)
        today, budget = told["today"]["total"], told["budget"]

    assert any("isError" in result for result in results)
    assert sum(spent) <= float(limit)
    assert budget["settled_usd"] == pytest.approx(sum(spent))
    assert today["cost_usd"] == pytest.approx(sum(spent))
    assert today["calls"] == 20


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "PRICE_UNKNOWN"),
        (401, "INVALID_API_KEY"),
        (402, "BILLING_REQUIRED"),
        (429, "RATE_LIMITED"),
        (500, "SERVICE_ERROR"),
    ],
)
async def test_without_a_price_a_budget_refuses_and_the_true_cause_is_told(
    api: Simulator, tmp_path: Path, status: int, code: str
) -> None:
    api.faults.always(Fault(status=status, on="models"))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        priceless = await client.error(CHAT, ASK)
        endless = await client.error(CHAT, {"messages": ASK["messages"]})
    async with bridge_process(api.url, tmp_path) as client:
        result = await client.call(CHAT, ASK)

    assert [error["code"] for error in (priceless, endless)] == [code] * 2
    assert ("MERCURY_ROUTES_FILE" in priceless["message"]) == (code == "PRICE_UNKNOWN")
    assert "cost_usd" not in result["structuredContent"]["metadata"]


async def test_prices_are_waited_for_once_and_no_longer_than_a_call_may_take(
    api: Simulator, tmp_path: Path
) -> None:
    settings = {"MERCURY_BUDGET_USD": "1", "REQUEST_TIMEOUT": f"{20 * PATIENCE:.0f}000"}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        api.faults.always(Fault(status=500, on="models"))
        await client.error(CHAT, ASK)
        before = len(api.requests.to("/models"))
        await client.error(CHAT, ASK)
        asked = len(api.requests.to("/models")) - before
        api.faults.always(Fault(delay=10 * PATIENCE, on="models"))
        async with asyncio.timeout(PATIENCE):
            late = await client.error(CHAT, {**ASK, "timeout_ms": 1000})

    assert asked == 1
    assert late["code"] == "TIMEOUT"


@pytest.mark.parametrize("larger", ["max_tokens", "max_completion_tokens"])
async def test_of_two_limits_of_the_answer_the_larger_one_is_reserved(
    api: Simulator, tmp_path: Path, larger: str
) -> None:
    asked = {**ASK, "max_tokens": 20, "max_completion_tokens": 20, larger: 50_000}
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=f"{1.2 * WORST:.9f}") as client:
        error = await client.error(CHAT, asked)
        await client.call(CHAT, {**asked, larger: 20})

    assert error["code"] == "BUDGET_EXCEEDED"


async def test_with_a_budget_and_no_network_the_network_is_named(api: Simulator, tmp_path: Path) -> None:
    async with (
        bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client,
        api.refusing(),
    ):
        error = await client.error(CHAT, ASK)

    assert error["code"] == "CONNECTION_FAILED"


async def test_with_a_budget_too_an_unknown_model_is_told_the_known_ones(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        error = await client.error(CHAT, {**ASK, "model": "mercury-99"})

    assert error["code"] == "MODEL_NOT_FOUND"
    assert "mercury-3" in error["message"]


async def test_a_broken_file_stops_a_budget_and_nothing_else(api: Simulator, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "mercury"
    folder.mkdir(parents=True)
    (folder / FILE).write_text("{ not what it should be }" * 50)
    async with bridge_process(api.url, tmp_path) as client:
        assert "isError" not in await client.call(CHAT, ASK)
        assert (await report(client))["since_start"]["total"]["calls"] == 1
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        error = await client.error(CHAT, ASK)

    assert (error["type"], error["code"]) == ("api_error", "STORAGE")
    assert FILE in error["message"]


# --- which limits there are --------------------------------------------------------------------------------


async def test_a_day_ends_at_midnight_and_a_month_with_its_last_day() -> None:
    now = NOON + 3723.25  # the 21st of September, 13:02:03.25

    assert Cap(1.0, "SETTING").seconds_left(now) == DAY / 2 - 3723.25
    assert Cap(1.0, "SETTING", is_monthly=True).seconds_left(now) == 9.5 * DAY - 3723.25


async def test_all_that_is_committed_is_settled_unless_a_part_is_known_not_to_be() -> None:
    spending = Spending(Cap(2.0, "MERCURY_BUDGET_USD"), 0.5)

    assert (spending.settled, spending.left, spending.cap.period) == (0.5, 1.5, "day")


async def test_each_limit_names_its_setting_its_period_and_whose_it_is(tmp_path: Path) -> None:
    limits = BudgetLimits(Amounts(1.0, 2.0), Amounts(3.0, 4.0), {"ci": Amounts(5.0, 6.0)})
    async with open_sqlite(tmp_path, Clock(NOON)) as books:
        budget = Budget(books, Clock(NOON), limits)

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


async def test_without_limits_only_an_uncertain_end_is_booked(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_sqlite(tmp_path, clock) as books:
        payer = Payer(books, clock, BudgetLimits())
        ends: tuple[State, ...] = ("settled", "released", "uncertain")
        for state in ends:
            payer.end(await payer.reserve("me", 0.25), state, 0.25)
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        rows = file.execute("SELECT model, sends, usd FROM sends").fetchall()

    assert rows == [("mercury-2", 1, 0.25)]


async def test_without_limits_nothing_is_booked_and_nothing_is_known(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_sqlite(tmp_path, clock) as books:
        payer = Payer(books, clock, BudgetLimits())
        reservation = await payer.reserve("me", 1.0)
        payer.end(reservation, "released")

        assert not payer.budget.is_set
        assert not reservation.is_booked
        assert (await payer.budget.spending("me"))[1] == []

    assert not (tmp_path / FILE).exists()


# --- one suite for both kinds of books ---------------------------------------------------------------------


async def test_a_send_is_reserved_and_settled_by_what_it_cost(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0)) as payer:
        reservation = await payer.reserve("me", 0.5)
        reserved = await payer.amounts()
        payer.end(reservation, "settled", 0.125)

        assert reserved == (0.0, 0.0, 0.5)
        assert await payer.amounts() == (0.125, 0.0, 0.0)


async def test_a_send_that_did_no_work_is_released(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0)) as payer:
        payer.end(await payer.reserve("me", 0.5), "released")

        assert await payer.amounts() == (0.0, 0.0, 0.0)


async def test_uncertain_money_stays_committed_and_a_late_settlement_replaces_it(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0)) as payer:
        reservation = await payer.reserve("me", 0.75)
        payer.end(reservation, "uncertain")
        uncertain = await payer.amounts()
        error = await refusal(payer, "me", 0.5)
        payer.end(reservation, "settled", 0.25)

        assert uncertain == (0.0, 0.75, 0.0)
        assert "$0.750000 of it is uncertain" in str(error)
        assert "bridgehead mercury usage --release" in str(error)
        assert await payer.amounts() == (0.25, 0.0, 0.0)


async def test_an_end_that_is_told_twice_counts_once(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0)) as payer:
        for state, usd in (("settled", 0.25), ("released", None), ("uncertain", None)):
            reservation = await payer.reserve("me", 0.3)
            payer.end(reservation, state, usd)  # type: ignore[arg-type]
            await payer.amounts()
            payer.end(reservation, state, usd)  # type: ignore[arg-type]

        assert await payer.amounts() == (0.25, 0.3, 0.0)


async def test_a_reservation_of_a_dead_process_becomes_uncertain_when_its_time_is_over(
    open_books: OpenBooks,
) -> None:
    clock, limits = Clock(NOON), BudgetLimits(Amounts(1.0))
    async with open_books(clock) as books:
        payer = Payer(books, clock, limits)
        reservation = await payer.reserve("me", 0.5, seconds=0.0)
        await payer.reserve("me", 0.25)
    async with open_books(clock) as books:
        other = Payer(books, clock, limits)

        assert await other.amounts() == (0.0, 0.5, 0.25)
        other.end(reservation, "settled", 0.125)
        assert await other.amounts() == (0.125, 0.0, 0.25)


async def test_a_reservation_beyond_the_budget_is_refused_and_books_nothing(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0), Amounts(0.5)) as payer:
        for client in ("ada", "bob"):
            await payer.reserve(client, 0.5)
        error = await refusal(payer, "eve", 0.01)

        assert "MERCURY_BUDGET_USD" in str(error)
        assert "uncertain" not in str(error)
        assert await payer.committed() == 1.0
        assert [spending.committed for spending in (await payer.budget.spending("eve"))[1]] == [1.0, 0.0]


async def test_many_reservations_at_once_never_pass_the_budget(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0), Amounts(0.5)) as payer:
        asked = [payer.reserve(f"client-{number}", 0.03) for number in range(50)]
        answers = await asyncio.gather(*asked, return_exceptions=True)

        assert sum(not isinstance(answer, Exception) for answer in answers) == 33
        assert await payer.committed() == pytest.approx(0.99)


async def test_processes_share_the_books_and_never_pass_a_budget_together(open_books: OpenBooks) -> None:
    clock, limits = Clock(NOON), BudgetLimits(Amounts(1.0), Amounts(month=0.9))
    async with open_books(clock) as one, open_books(clock) as other:
        payers = [Payer(books, clock, limits) for books in (one, other)]

        async def spend(number: int) -> float:
            payer = payers[number % 2]
            try:
                reservation = await payer.reserve(f"client-{number % 3}", 0.05)
            except MercuryError:
                return 0.0
            payer.end(reservation, "settled", 0.04)
            return 0.04

        settled = sum(await asyncio.gather(*(spend(number) for number in range(200))))
        for payer in payers:  # ends are booked soon, and a process that looks has booked its own
            await payer.amounts()
        for payer in payers:
            assert await payer.amounts() == pytest.approx((settled, 0.0, 0.0))

    assert 0.5 < settled <= 1.0


async def test_what_was_reserved_yesterday_is_settled_there_and_no_part_of_today(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0, 10.0)) as payer:
        yesterday = await payer.reserve("me", 0.5)
        payer.clock.advance(DAY)
        today = await payer.reserve("me", 0.3)
        payer.end(yesterday, "settled", 0.1)

        assert await payer.amounts() == (0.0, 0.0, 0.3)
        payer.end(today, "settled", 0.2)
        day, month = (await payer.budget.spending("me"))[1]
        assert (day.settled, month.settled) == pytest.approx((0.2, 0.3))


async def test_a_month_is_the_sum_of_its_days(budgeted: Open) -> None:
    async with budgeted(Amounts(month=1.0)) as payer:  # the 21st of September
        for _ in range(2):
            await payer.reserve("me", 0.4)
            payer.clock.advance(DAY)
        error = await refusal(payer, "me", 0.4)
        payer.clock.advance(9 * DAY)  # the 2nd of October
        await payer.reserve("me", 0.4)

    assert "The month's budget of $1 has $0.200000 left" in str(error)
    assert "MERCURY_MONTH_BUDGET_USD" in str(error)
    assert "or wait for the next UTC month." in str(error)
    assert error.retry_after == 7.5 * DAY  # from noon of the 23rd


async def test_one_client_cannot_spend_what_is_anothers(budgeted: Open) -> None:
    clients = {"ci": Amounts(day=0.1, month=0.15), "boss": Amounts()}
    async with budgeted(Amounts(day=2.0), Amounts(day=0.5), clients) as payer:
        await payer.reserve("alice", 0.5)
        alice = await refusal(payer, "alice", 0.1)
        await payer.reserve("bob", 0.5)
        await payer.reserve("ci", 0.1)
        ci = await refusal(payer, "ci", 0.01)
        payer.clock.advance(DAY)
        ci_in_month = await refusal(payer, "ci", 0.1)
        await payer.reserve("boss", 1.9)
        everybody = await refusal(payer, "bob", 0.2)

    assert "The day's budget of alice of $0.5 has $0.000000 left" in str(alice)
    assert "MERCURY_CLIENT_BUDGET_USD" in str(alice)
    assert alice.retry_after == DAY / 2
    assert "The day's budget of ci" in str(ci)
    assert "The month's budget of ci" in str(ci_in_month)
    assert "MERCURY_CLIENT_BUDGETS" in str(ci_in_month)
    assert "The day's budget of $2" in str(everybody)


async def test_a_call_that_nothing_limits_books_nothing(budgeted: Open) -> None:
    async with budgeted(clients={"ada": Amounts(1.0)}) as payer:
        bob = await payer.reserve("bob", 0.5)
        ada = await payer.reserve("ada", 0.25)

        assert (bob.is_booked, ada.is_booked) == (False, True)
        assert await payer.committed("ada") == 0.25


async def test_what_cost_more_than_its_worst_case_is_settled_in_full(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0)) as payer:
        payer.end(await payer.reserve("me", 1.0), "settled", 1.5)
        (spending,) = (await payer.budget.spending("me"))[1]

    assert (spending.committed, spending.left) == (1.5, 0.0)


async def test_a_send_that_is_cancelled_while_it_is_booked_is_released(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0)) as payer:
        await payer.committed()
        reserving = asyncio.create_task(payer.reserve("me", 0.4))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        reserving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reserving
        async with asyncio.timeout(PATIENCE):
            while await payer.committed():
                await asyncio.sleep(0.005)

        assert await payer.amounts() == (0.0, 0.0, 0.0)


async def test_a_send_that_is_cancelled_while_it_is_refused_was_never_booked(budgeted: Open) -> None:
    async with budgeted(Amounts(1.0)) as payer:
        held = await payer.reserve("me", 0.9)
        refused = replace(held, id="", is_booked=False)
        reserving = asyncio.create_task(payer.budget.reserve(refused))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        reserving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reserving
        for _ in range(2):  # a look waits for what was begun before it
            assert await payer.amounts() == (0.0, 0.0, 0.9)

        assert (refused.is_booked, refused.state) == (False, "open")


async def test_a_send_cancelled_while_another_process_writes_is_released(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_sqlite(tmp_path, clock) as books:
        payer = Payer(books, clock, BudgetLimits(Amounts(1.0)))
        await payer.committed()
        other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        reserving = asyncio.create_task(payer.reserve("me", 0.4))
        await asyncio.sleep(0.05)
        reserving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reserving
        other.execute("COMMIT")
        other.close()

        assert await payer.committed() == 0.4  # its writing was under way and came to its end
        assert await payer.committed() == 0.0


# --- events ------------------------------------------------------------------------------------------------


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
def told() -> Any:
    listening = Told()
    events.feed.join(listening.listener)
    yield listening
    events.feed.leave(listening.listener)


async def test_every_share_is_published_when_it_is_reached_and_only_then(budgeted: Open, told: Told) -> None:
    async with budgeted(Amounts(2.0, 100.0)) as payer:
        published = []
        for usd in (0.98, 0.02, 0.6, 0.2, 0.2):
            await payer.reserve("me", usd)
            await payer.budget.check()
            await payer.budget.check()
            published.append(await told.take())
        await refusal(payer, "me", 0.01)
        await refusal(payer, "me", 0.01)

        percents = [[], [50.0], [80.0], [90.0], [100.0]]
        assert published == [[("budget.threshold", percent) for percent in those] for those in percents]
        assert await told.take() == [("budget.refused", 100.0)]
        assert payer.budget.left() == {"day": 0.0, "month": 98.0}


async def test_an_event_says_whose_budget_it_is_and_what_is_committed_of_it(
    budgeted: Open, told: Told
) -> None:
    async with budgeted(NO_LIMIT, Amounts(month=3.0)) as payer:
        payer.end(await payer.reserve("ada", 1.0), "settled", 0.5)
        payer.end(await payer.reserve("ada", 0.25), "uncertain")
        await payer.committed("ada")
        await payer.reserve("ada", 1.1000001)
        assert len(told.listener) == 1
        (event,) = await told.listener.take(1)

        assert event.data == {
            "bridge": "mercury",
            "period": "month",
            "client": "ada",
            "percent": 61.7,
            "limit_usd": 3.0,
            "left_usd": 1.15,
            "settled_usd": 0.5,
            "uncertain_usd": 0.25,
            "reserved_usd": 1.1,
        }
        assert payer.budget.left() == {}  # which is everybody's


async def test_a_new_day_is_published_anew(budgeted: Open, told: Told) -> None:
    async with budgeted(Amounts(1.0)) as payer:
        for _ in range(2):
            await payer.reserve("me", 0.6)
            await payer.budget.check()
            payer.clock.advance(DAY)

    assert [kind for kind, _ in await told.take()] == ["budget.threshold"] * 2


async def test_a_budget_of_nothing_is_used_up_from_the_start(budgeted: Open, told: Told) -> None:
    async with budgeted(Amounts(0.0)) as payer:
        await payer.budget.check()

    assert await told.take() == [("budget.threshold", 100.0)]


async def test_two_budgets_are_told_apart_and_each_once(budgeted: Open, told: Told) -> None:
    async with budgeted(Amounts(1.0, 2.0)) as payer:
        await payer.reserve("me", 1.0)
        for _ in range(3):
            await payer.budget.check()

    assert await told.take() == [("budget.threshold", 100.0), ("budget.threshold", 50.0)]


async def test_what_was_published_is_remembered_of_a_bounded_number_of_clients(
    budgeted: Open, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "_MAX_PUBLISHED", 2)
    async with budgeted(NO_LIMIT, Amounts(1.0)) as payer:
        for client in ("ada", "bob", "ada", "cleo", "ada"):
            await refusal(payer, client, 1.5)

    assert len(await told.take()) == 4  # ada's is published anew once too many were there


async def test_a_look_without_a_client_is_at_the_budgets_of_everybody(budgeted: Open) -> None:
    async with budgeted(Amounts(2.0, 3.0), Amounts(0.5, 0.6)) as payer:
        await payer.budget.check()

        assert payer.budget.left() == {"day": 2.0, "month": 3.0}


@pytest.mark.parametrize(
    "act",
    [lambda payer: payer.budget.check(), lambda payer: payer.reserve("me", 0.5)],
    ids=["check", "reserve"],
)
async def test_books_that_cannot_be_written_are_a_problem_where_there_is_a_budget_until_they_can(
    tmp_path: Path, act: Callable[[Payer], Awaitable[object]]
) -> None:
    clock, broken = Clock(NOON), tmp_path / FILE
    broken.mkdir()  # a folder in the place of the file
    async with open_sqlite(tmp_path, clock) as books:
        limited, unlimited = (Budget(books, clock, BudgetLimits(most)) for most in (Amounts(1.0), NO_LIMIT))
        assert limited.problem == ""
        await limited.check()

        assert "cannot be used" in limited.problem
        assert unlimited.problem == ""
        broken.rmdir()
        await act(Payer(books, clock, BudgetLimits(Amounts(1.0))))
        assert limited.problem == ""


async def test_on_a_new_day_its_whole_budget_is_left_before_anybody_calls(budgeted: Open) -> None:
    """The gauge of it feeds an alert, which would go on firing."""
    async with budgeted(Amounts(1.0, 3.0)) as payer:
        await payer.reserve("me", 0.9)
        assert payer.budget.left()["day"] == pytest.approx(0.1)
        payer.clock.advance(DAY)

        assert payer.budget.left() == {"day": 1.0, "month": pytest.approx(2.1)}
