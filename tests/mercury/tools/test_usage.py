"""`mercury_usage`: what was used, since the start and today."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import bridge_process
from tests.support import mercury_journal

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of use, in 8 words"}]}


async def test_models_that_clients_make_up_are_counted_together(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path) as client:
        for number in range(5):
            error = await client.error(CHAT, {**ASK, "model": f"made-up-{number}"})
            assert error["code"] == "MODEL_NOT_FOUND"
        report = (await client.call("mercury_usage"))["structuredContent"]

    assert list(report["today"]["models"]) == ["(unknown)"]
    assert report["since_start"]["models"]["(unknown)"]["errors"] == 5


async def test_usage_adds_up_by_model_and_over_processes(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path) as client:
        await client.call("mercury_list_models")
        first = (await client.call(CHAT, {**ASK, "cache": "use"}))["structuredContent"]["metadata"]
        await client.call(CHAT, {**ASK, "cache": "use"})
        await client.call("mercury_chat_stream", {**ASK, "model": "mercury-3"})
        api.faults.next(Fault(status=400))
        await client.error(CHAT, ASK)
        report = (await client.call("mercury_usage"))["structuredContent"]
    async with bridge_process(api.url, tmp_path) as client:
        await client.call(CHAT, ASK)
        later = (await client.call("mercury_usage"))["structuredContent"]

    models = report["since_start"]["models"]
    assert set(models) == {"mercury-2", "mercury-3"}
    assert (models["mercury-2"]["calls"], models["mercury-2"]["errors"]) == (3, 1)
    assert models["mercury-2"]["cache_hits"] == 1
    assert models["mercury-2"]["total_tokens"] == first["usage"]["total_tokens"]
    assert models["mercury-2"]["cost_usd"] == pytest.approx(first["cost_usd"])
    assert report["since_start"]["total"]["calls"] == 4
    assert report["today"] == report["since_start"]
    assert (report["cache"]["hits"], report["cache"]["entries"]) == (1, 1)
    assert "budget" not in report
    assert later["since_start"]["total"]["calls"] == 1
    assert later["today"]["total"]["calls"] == 5


async def test_the_past_is_told_by_day_model_and_client_on_request(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path) as client:
        await client.call("mercury_list_models")
        await client.call(CHAT, ASK)
        await client.call(CHAT, {**ASK, "model": "mercury-3"})
        plain = (await client.call("mercury_usage"))["structuredContent"]
        by_day = (await client.call("mercury_usage", {"days": 7}))["structuredContent"]["history"]
        by_all = (await client.call("mercury_usage", {"days": 1, "by": ["client", "model"]}))[
            "structuredContent"
        ]
        error = await client.error("mercury_usage", {"days": 1, "by": ["week"]})

    assert "history" not in plain
    assert [(row["day"], row["calls"]) for row in by_day] == [(datetime.now(UTC).date().isoformat(), 2)]
    assert [(row["client"], row["model"]) for row in by_all["history"]] == [
        ("tests", "mercury-2"),
        ("tests", "mercury-3"),
    ]
    assert error["code"] == "INVALID_ARGUMENTS"


async def test_every_budget_of_the_client_is_told(api: Simulator, tmp_path: Path) -> None:
    settings = {"MERCURY_MONTH_BUDGET_USD": "20", "MERCURY_CLIENT_BUDGET_USD": "0.5"}
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1", **settings) as client:
        cost = (await client.call(CHAT, ASK))["structuredContent"]["metadata"]["cost_usd"]
        report = (await client.call("mercury_usage"))["structuredContent"]

    month, own = report["further_budgets"]
    assert (report["budget"]["limit_usd"], month["limit_usd"], own["limit_usd"]) == (1, 20, 0.5)
    assert (month["period"], own["period"], own["client"]) == ("month", "day", "(no token)")
    assert own["committed_usd"] == pytest.approx(cost, abs=1e-9)


async def test_the_first_call_of_a_process_has_its_cost(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(delay=0.1, on="models"))
    async with bridge_process(api.url, tmp_path) as client:
        result = await client.call(CHAT, ASK)

    assert result["structuredContent"]["metadata"]["cost_usd"] > 0


async def test_an_answer_that_came_before_the_prices_is_priced_when_they_come(
    api: Simulator, tmp_path: Path
) -> None:
    api.faults.next(Fault(status=500, on="models"))
    async with bridge_process(api.url, tmp_path) as client:
        await mercury_journal.until(api.requests, lambda journal: journal.to("/models")[0].finished)
        result = await client.call(CHAT, ASK)
        before = (await client.call("mercury_usage"))["structuredContent"]["today"]["total"]
        await client.call("mercury_list_models")
        after = (await client.call("mercury_usage"))["structuredContent"]["today"]["total"]

    assert "cost_usd" not in result["structuredContent"]["metadata"]
    assert (before["cost_usd"], before["unpriced"]) == (0, 1)
    assert after["cost_usd"] > 0
    assert after["unpriced"] == 0
    assert after["calls"] == 1
