"""Cost: the agent reads what its call cost, what may be billed without an answer, and what is left."""

import re
from pathlib import Path

import pytest

from bridgehead.mercury.completion import format_usd
from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.calling.test_budget import ASK, CHAT, WORST
from tests.mercury.one_answer import answering, completion
from tests.mercury.process import bridge_process, error_of

STREAM = "mercury_chat_stream"
USD = r"\$[0-9.]+"


@pytest.mark.parametrize("tool", [CHAT, STREAM])
@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_tells_its_cost_and_what_is_left_in_a_second_block(
    api: Simulator, tmp_path: Path, tool: str
) -> None:
    budgets = {"MERCURY_BUDGET_USD": "1", "MERCURY_MONTH_BUDGET_USD": "2", "MERCURY_CLIENT_BUDGET_USD": "0.5"}
    async with bridge_process(api.url, tmp_path, **budgets) as client:
        result = await client.call(tool, ASK)

    answer, money = result["content"]
    metadata = result["structuredContent"]["metadata"]
    assert answer["text"] == result["structuredContent"]["content"]
    assert re.fullmatch(
        rf"Cost: {USD}\. Left of the budget: {USD} for the day, {USD} for the month\.", money["text"]
    )
    left = {"day": 0.5 - metadata["cost_usd"], "month": 2 - metadata["cost_usd"]}
    assert metadata["budget_left_usd"] == pytest.approx(left, abs=1e-9)


@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_tells_what_may_be_billed_without_an_answer(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1", MERCURY_MAX_RETRIES="0") as client:
        await client.call("mercury_list_models")
        api.faults.next(Fault(status=504))
        lost = await client.call(CHAT, ASK)
        api.faults.next(Fault(status=400))
        refused = await client.call(CHAT, ASK)

    assert error_of(lost)["code"] == "SERVICE_UNAVAILABLE"
    left = rf"Left of the budget: {USD} for the day\."
    assert re.fullmatch(
        rf"Up to {USD} may be billed .* without an answer\. {left}", lost["content"][1]["text"]
    )
    assert re.fullmatch(left, refused["content"][1]["text"])


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_after_a_lost_send_tells_both(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=504))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        metadata = (await client.call(CHAT, ASK))["structuredContent"]["metadata"]

    assert 0 < metadata["cost_usd"] < metadata["uncertain_usd"] < 2 * WORST


@pytest.mark.asyncio(loop_scope="module")
async def test_a_retry_without_budget_keeps_the_first_cause(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=504))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=f"{1.5 * WORST:.9f}") as client:
        error = await client.error(CHAT, ASK)

    assert error["code"] == "SERVICE_UNAVAILABLE"
    assert "failed (504)" in error["message"]
    assert "It was not sent again. The day's budget of" in error["message"]
    assert error["retry_after"] > 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_cached_answer_cost_nothing(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        results = [await client.call(CHAT, {**ASK, "cache": "use"}) for _ in range(2)]

    assert [len(result["content"]) for result in results] == [2, 1]
    metadata = results[1]["structuredContent"]["metadata"]
    assert metadata["cost_usd"] == 0
    assert "budget_left_usd" not in metadata


@pytest.mark.asyncio(loop_scope="module")
async def test_a_batch_whose_prices_are_not_known_says_so(tmp_path: Path) -> None:
    async with answering(200, completion(), tmp_path) as client:
        result = await client.call("mercury_batch", {"prompts": ["one", "two"]})

    assert "cost_usd" not in result["structuredContent"]
    assert "What 2 of the answers cost is not known." in result["content"][-1]["text"]


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0, "$0.00"), (1234.5, "$1,234.50"), (0.25, "$0.25"), (0.0042, "$0.0042"), (0.00003149, "$0.000031")],
)
def test_an_amount_has_two_digits_that_count(usd: float, shown: str) -> None:
    assert format_usd(usd) == shown
