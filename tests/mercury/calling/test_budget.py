"""The budget: held before a request goes out, corrected after, never passed, and shared by all processes."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.api.catalogue import Catalogue
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits
from bridgehead.mercury.calling.usage_store import FILE, MAX_CLIENTS
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime import events
from bridgehead.runtime.events import Listener
from bridgehead.runtime.stores.ledger import SharedLedger
from tests.mercury.calling.clock import DAY, GivenClock
from tests.mercury.calling.reserving import reserve
from tests.mercury.calling.test_usage_store import open_store, rows
from tests.mercury.process import BridgeProcess, bridge_process, sharing
from tests.support.checked import connect
from tests.support.redis_server import RedisServer
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of money, in 8 words"}], "max_tokens": 20}
PROMPT_PRICE, COMPLETION_PRICE = 2.5e-7, 7.5e-7
WORST = 100 * PROMPT_PRICE + 20 * COMPLETION_PRICE
"""What one call can cost at most, roughly: its body has about a hundred bytes."""


def committed(folder: Path) -> float:
    """Read what the processes have written down."""
    found = rows(folder / "state" / "mercury", "SELECT total(committed_usd) FROM spending WHERE day = date()")
    return float(str(found[0][0]))


async def committed_by(budget: Budget, client: str = "me") -> float:
    """Give what is committed of a budget's first limit."""
    return (await budget.spending(client))[1][0].committed


async def report(client: BridgeProcess) -> Any:
    return (await client.call("mercury_usage"))["structuredContent"]


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
    assert committed(tmp_path) == pytest.approx(cost)


async def test_many_calls_at_once_never_pass_the_budget(api: Simulator, tmp_path: Path) -> None:
    limit = 6 * WORST
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=f"{limit:.9f}") as client:
        answers = [client.start(CHAT, ASK)[1] for _ in range(60)]
        results = [(await answer)["result"] for answer in answers]
        spent = (await report(client))["since_start"]["total"]["cost_usd"]

    refused = [result for result in results if "isError" in result]
    assert refused
    assert len(refused) < len(results)
    assert 0 < spent <= limit
    assert committed(tmp_path) == pytest.approx(spent)


async def test_an_answer_that_was_lost_keeps_its_worst_case(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        await client.call("mercury_list_models")
        api.faults.next(Fault(kind="cut"))
        await client.call("mercury_chat_stream", ASK)
        budget = (await report(client))["budget"]

    assert budget["committed_usd"] > 20 * COMPLETION_PRICE


async def test_a_refused_request_costs_nothing(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=400))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        await client.error(CHAT, ASK)
        budget = (await report(client))["budget"]

    assert budget["committed_usd"] == 0


async def test_a_call_that_is_cancelled_keeps_its_worst_case(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(delay=30))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        request_id, _ = client.start(CHAT, ASK)
        await api.requests.until(lambda journal: journal.to("/chat/completions")[0])
        client.cancel(request_id)
        budget = (await report(client))["budget"]

    assert budget["committed_usd"] > 20 * COMPLETION_PRICE


async def test_processes_of_one_user_share_the_day(api: Simulator, tmp_path: Path) -> None:
    limit = f"{2.2 * WORST:.9f}"
    async with (
        bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=limit) as one,
        bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=limit) as other,
    ):
        clients = [one, other] * 10
        results = await asyncio.gather(*(client.call(CHAT, ASK) for client in clients))
        spent = [(await report(client))["since_start"]["total"]["cost_usd"] for client in (one, other)]
        today = (await report(one))["today"]["total"]

    assert any("isError" in result for result in results)
    assert sum(spent) <= float(limit)
    assert committed(tmp_path) == pytest.approx(sum(spent))
    assert today["cost_usd"] == pytest.approx(sum(spent))
    assert today["calls"] == 20


async def test_without_a_price_a_budget_refuses(api: Simulator, tmp_path: Path) -> None:
    api.faults.always(Fault(status=500, on="models"))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        priceless = await client.error(CHAT, ASK)
        endless = await client.error(CHAT, {"messages": ASK["messages"]})
    async with bridge_process(api.url, tmp_path) as client:
        result = await client.call(CHAT, ASK)

    assert [error["code"] for error in (priceless, endless)] == ["PRICE_UNKNOWN"] * 2
    assert "cost_usd" not in result["structuredContent"]["metadata"]


@pytest.mark.parametrize("is_replica", [False, True], ids=["alone", "replica"])
async def test_prices_are_waited_for_once_and_no_longer_than_a_call_may_take(
    api: Simulator, tmp_path: Path, redis_server: RedisServer, *, is_replica: bool
) -> None:
    settings = {"MERCURY_BUDGET_USD": "1", **(sharing(redis_server) if is_replica else {})}
    async with bridge_process(
        api.url, tmp_path, REQUEST_TIMEOUT=f"{20 * PATIENCE:.0f}000", **settings
    ) as client:
        api.faults.always(Fault(status=500, on="models"))
        await client.error(CHAT, ASK)
        before = len(api.requests.to("/models"))
        await client.error(CHAT, ASK)
        asked = len(api.requests.to("/models")) - before
        api.faults.always(Fault(delay=10 * PATIENCE, on="models"))
        async with asyncio.timeout(PATIENCE):
            late = await client.error(CHAT, {**ASK, "timeout_ms": 1000})

    assert asked == 1
    assert late["code"] == "PRICE_UNKNOWN"


async def test_a_budget_does_not_trust_prices_that_could_not_be_renewed(
    api: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "MERCURY_API_URL": api.url,
        "MERCURY_API_KEY": "sk_only_for_this_test",
        "MERCURY_BUDGET_USD": "1",
        "MERCURY_MODEL": "mercury-2",
        "BRIDGEHEAD_STATE_DIR": str(tmp_path),
    }
    async with connect(make_bridge(MercurySettings(settings))) as client:
        fresh = await client.request("tools/call", {"name": CHAT, "arguments": ASK})
        monkeypatch.setattr(Catalogue, "is_current", False)
        stale = await client.request("tools/call", {"name": CHAT, "arguments": ASK})

    assert "isError" not in fresh
    assert stale["isError"]
    assert "PRICE_UNKNOWN" in stale["content"][0]["text"]


async def test_with_a_budget_too_an_unknown_model_is_told_the_known_ones(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        error = await client.error(CHAT, {**ASK, "model": "mercury-99"})

    assert error["code"] == "MODEL_NOT_FOUND"
    assert "mercury-3" in error["message"]


@pytest.mark.parametrize("name", ["usage.sqlite3", "today.json"])
async def test_a_broken_file_stops_a_budget_and_nothing_else(
    api: Simulator, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "state" / "mercury"
    folder.mkdir(parents=True)
    (folder / name).write_text("{ not what it should be }" * 50)
    async with bridge_process(api.url, tmp_path) as client:
        assert "isError" not in await client.call(CHAT, ASK)
        assert (await report(client))["since_start"]["total"]["calls"] == 1
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        error = await client.error(CHAT, ASK)

    assert (error["type"], error["code"]) == ("api_error", "STORAGE")
    assert name in error["message"]


async def test_a_new_day_begins_at_nothing(api: Simulator, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "mercury"
    folder.mkdir(parents=True)
    (folder / "today.json").write_text(json.dumps({"day": "2020-02-02", "committed_usd": 5.0, "models": {}}))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        assert "isError" not in await client.call(CHAT, ASK)

    assert committed(tmp_path) < WORST


async def cancel_reserving(budget: Budget, folder: Path, amount: float) -> None:
    """Cancel a call that asks for money, while another process writes just then."""
    other = sqlite3.connect(folder / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    reserving = asyncio.create_task(budget.reserve("me", amount))
    await asyncio.sleep(0.05)
    reserving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reserving
    other.execute("COMMIT")
    other.close()


async def test_money_held_for_a_call_that_is_cancelled_meanwhile_is_given_back(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(Amounts(1.0)))
        await committed_by(budget)
        await cancel_reserving(budget, tmp_path, 0.4)
        assert await committed_by(budget) == 0.4  # its writing was under way and came to its end

        assert await committed_by(budget) == 0.0


async def test_what_was_held_yesterday_is_settled_there_and_no_part_of_today(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(Amounts(1.0)))
        held = await budget.reserve("me", 0.5)
        clock.time += DAY
        today = await budget.reserve("me", 0.3)

        budget.settle(held, 0.1)

        assert await committed_by(budget) == 0.3
        budget.settle(today, 0.2)
        assert await committed_by(budget) == pytest.approx(0.2)

    assert rows(tmp_path, "SELECT committed_usd FROM spending ORDER BY day") == [(0.1,), (0.2,)]


# --- by month and by client --------------------------------------------------------------------------------


async def refusal(
    budget: Budget, client: str, amount: float, ledger: SharedLedger | None = None
) -> MercuryError:
    with pytest.raises(MercuryError) as refused:
        await reserve(budget, ledger, client, amount)
    assert refused.value.code == "BUDGET_EXCEEDED"
    return refused.value


async def test_a_month_is_the_sum_of_its_days(tmp_path: Path) -> None:
    clock = GivenClock()  # the 21st of September
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(Amounts(month=1.0)))
        for _ in range(2):
            await budget.reserve("me", 0.4)
            clock.time += DAY
        error = await refusal(budget, "me", 0.4)
        clock.time += 9 * DAY  # the 2nd of October
        await budget.reserve("me", 0.4)

    assert "The month's budget of $1 has $0.200000 left" in str(error)
    assert "MERCURY_MONTH_BUDGET_USD" in str(error)
    assert error.retry_after == 7.5 * DAY  # from noon of the 23rd


async def test_one_client_cannot_spend_what_is_anothers(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        limits = BudgetLimits(
            Amounts(day=2.0), Amounts(day=0.5), {"ci": Amounts(day=0.1, month=0.15), "boss": Amounts()}
        )
        budget = Budget(store, clock, limits)
        await budget.reserve("alice", 0.5)
        alice = await refusal(budget, "alice", 0.1)
        await budget.reserve("bob", 0.5)
        await budget.reserve("ci", 0.1)
        ci = await refusal(budget, "ci", 0.01)
        clock.time += DAY
        ci_in_month = await refusal(budget, "ci", 0.1)
        await budget.reserve("boss", 1.9)
        everybody = await refusal(budget, "bob", 0.2)

    assert "The day's budget of alice of $0.5 has $0.000000 left" in str(alice)
    assert "MERCURY_CLIENT_BUDGET_USD" in str(alice)
    assert "The day's budget of ci" in str(ci)
    assert "The month's budget of ci" in str(ci_in_month)
    assert "MERCURY_CLIENT_BUDGETS" in str(ci_in_month)
    assert "The day's budget of $2" in str(everybody)


async def test_names_that_clients_make_up_share_one_budget(tmp_path: Path) -> None:
    """Beyond those that can be told apart."""
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(each_client=Amounts(day=1.0)))
        for number in range(MAX_CLIENTS):
            await budget.reserve(f"known-{number}", 0.1)
        await budget.reserve("further-1", 0.6)
        await refusal(budget, "further-2", 0.6)


async def test_each_share_of_a_budget_is_told_once_and_what_is_left_is_known(tmp_path: Path) -> None:
    listener = Listener()
    events.feed.join(listener)
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(Amounts(1.0, None)))
        for amount in (0.45, 0.1, 0.1, 0.3, 0.01):
            await budget.reserve("me", amount)
        with pytest.raises(MercuryError):
            await budget.reserve("me", 0.5)
        await budget.check()
    events.feed.leave(listener)

    told = [(event.type, event.data["percent"]) for event in await listener.take(99)]
    assert told == [("budget.threshold", 55.0), ("budget.threshold", 95.0), ("budget.refused", 96.0)]
    assert budget.latest["day"].left == pytest.approx(0.04)


async def test_a_new_day_tells_anew(tmp_path: Path) -> None:
    listener = Listener()
    events.feed.join(listener)
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(Amounts(1.0, None)))
        for _ in range(2):
            await budget.reserve("me", 0.6)
            await budget.check()
            clock.time += DAY
    events.feed.leave(listener)

    assert [event.type for event in await listener.take(99)] == ["budget.threshold"] * 2
