"""`mercury_batch`: many prompts, some at once, each with its own end."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mercury.bridge import manifest
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.mercury.tools.batch import Batch
from tests.mercury.one_answer import answering, completion
from tests.mercury.process import HEARTBEAT_SECONDS, BridgeProcess, bridge_process, environment, error_of
from tests.support import mercury_journal
from tests.support.task_client import TaskClient, connect
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

BATCH = "mercury_batch"


async def test_results_come_in_the_order_of_the_prompts(client: BridgeProcess, api: Simulator) -> None:
    prompts = [f"Number {number}, in 9 words" for number in range(12)]
    result = (await client.call(BATCH, {"prompts": prompts, "concurrency": 5}))["structuredContent"]

    assert [item["index"] for item in result["results"]] == list(range(12))
    for number, item in enumerate(result["results"]):
        assert f"Number {number}," in item["content"]
    assert (result["succeeded"], result["failed"]) == (12, 0)
    assert result["total_tokens"] > 0
    assert result["cost_usd"] > 0
    assert result["models"] == ["mercury-2"]


async def test_no_more_run_at_once_than_allowed(client: BridgeProcess, api: Simulator) -> None:
    api.faults.always(Fault(delay=0.03))
    await client.call(BATCH, {"prompts": [f"p{number}" for number in range(10)], "concurrency": 3})

    assert mercury_journal.most_at_once(api.requests, "/chat/completions") == 3


async def test_one_that_fails_stops_no_other(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(status=400))
    arguments = {"prompts": ["a", "b", "c"], "concurrency": 1, "max_tokens": 5}
    result = (await client.call(BATCH, arguments))["structuredContent"]

    first, *others = result["results"]
    assert first["error"] == "INVALID_REQUEST"
    ((told,),) = (result["errors"],)
    assert told["indexes"] == [0]
    assert (told["error"]["type"], told["error"]["code"]) == ("validation_error", "INVALID_REQUEST")
    assert "content" not in first
    assert all("error" not in item for item in others)
    assert (result["succeeded"], result["failed"]) == (2, 1)


async def test_a_batch_waits_for_its_turn_and_leaves_room_for_calls_beside_it(
    api: Simulator, tmp_path: Path
) -> None:
    limits = {"RATE_LIMIT_MAX": "10", "RATE_LIMIT_WINDOW": "400", HEARTBEAT_SECONDS: "0.05"}
    ask = {"messages": [{"role": "user", "content": "Beside it, in 5 words"}]}
    async with bridge_process(api.url, tmp_path, **limits) as client:
        batch = asyncio.create_task(
            client.call(BATCH, {"prompts": [f"p{number}" for number in range(25)]}, progress=7)
        )
        # Eight of the ten calls of a window are the batch's; then it waits.
        await mercury_journal.until(api.requests, lambda journal: len(journal.to("/chat/completions")) >= 8)
        beside = await client.call("mercury_chat_completion", ask)
        result = (await batch)["structuredContent"]

    assert "isError" not in beside
    assert (result["succeeded"], result["failed"]) == (25, 0)
    told = [note["params"]["progress"] for note in client.notifications]
    assert told == sorted(set(told))
    assert any(value % 1 for value in told)  # heartbeats, while it waited


async def test_progress_counts_the_prompts(client: BridgeProcess) -> None:
    await client.call(BATCH, {"prompts": ["a", "b", "c"], "concurrency": 1}, progress=9)

    assert [(notice["progress"], notice["total"]) for notice in client.progress()] == [(1, 3), (2, 3), (3, 3)]


async def test_options_and_a_system_message_go_for_all(client: BridgeProcess, api: Simulator) -> None:
    options = {"model": "mercury-3", "temperature": 0.9, "stop": ["x"], "reasoning_effort": "instant"}
    await client.call(BATCH, {"prompts": ["a", "b"], "system": "Be kind.", **options})

    bodies = [request.body for request in api.requests.to("/chat/completions")]
    assert len(bodies) == 2
    for body in bodies:
        assert body["messages"][0] == {"role": "system", "content": "Be kind."}
        assert {name: body[name] for name in options} == options


async def test_kept_answers_are_used_where_asked_for(client: BridgeProcess, api: Simulator) -> None:
    arguments = {"prompts": ["kept"], "cache": "use"}
    await client.call(BATCH, arguments)
    (item,) = (await client.call(BATCH, arguments))["structuredContent"]["results"]

    assert item["from_cache"]
    assert len(api.requests.to("/chat/completions")) == 1


async def test_cancelling_ends_every_request(client: BridgeProcess, api: Simulator) -> None:
    api.faults.always(Fault(delay=30))
    request_id, _ = client.start(BATCH, {"prompts": ["a", "b", "c"], "concurrency": 2})
    await mercury_journal.until(api.requests, lambda journal: len(journal) == 2)
    client.cancel(request_id)

    await mercury_journal.until(
        api.requests, lambda journal: all(one.aborted is not None for one in journal), within=PATIENCE
    )
    assert len(api.requests) == 2


@asynccontextmanager
async def task_client(api: Simulator, state: Path) -> AsyncIterator[TaskClient]:
    """Connect a client that can take tasks, which are made at once."""
    bridge = manifest.make(MercurySettings(environment(api.url, state)), None)
    bridge.tools[BATCH].task_grace_seconds = 0
    async with connect(bridge) as client:
        yield client


async def test_a_long_batch_becomes_a_task_that_tells_how_far_it_is(api: Simulator, tmp_path: Path) -> None:
    async with task_client(api, tmp_path) as client:
        task = await client.end(await client.make(BATCH, {"prompts": ["a", "b", "c"], "concurrency": 1}))

    assert (task["status"], task["statusMessage"]) == ("completed", "3 of 3")
    assert task["result"]["structuredContent"]["succeeded"] == 3


async def test_cancelling_the_task_of_a_batch_ends_every_request(api: Simulator, tmp_path: Path) -> None:
    api.faults.always(Fault(delay=30))
    async with task_client(api, tmp_path) as client:
        task_id = await client.make(BATCH, {"prompts": ["a", "b", "c"], "concurrency": 2})
        asked = api.requests.to
        await mercury_journal.until(
            api.requests, lambda _: len(asked("/chat/completions")) == 2, within=PATIENCE
        )
        await client.cancel(task_id)
        await mercury_journal.until(
            api.requests,
            lambda _: all(one.aborted is not None for one in asked("/chat/completions")),
            within=PATIENCE,
        )

        assert (await client.get(task_id))["status"] == "cancelled"
    assert len(api.requests.to("/chat/completions")) == 2


async def test_a_batch_that_failed_leaves_nothing_to_the_garbage_collector(
    api: Simulator, tmp_path: Path
) -> None:
    api.faults.always(Fault(status=400))
    async with task_client(api, tmp_path) as client:
        gc.collect()
        gc.disable()
        try:
            task = await client.end(await client.make(BATCH, {"prompts": ["a", "b"]}))
            assert task["result"]["isError"]
            await until(lambda: not any(isinstance(one, Batch) for one in gc.get_objects()))
        finally:
            gc.enable()


@pytest.mark.parametrize(
    "wrong", [{}, {"prompts": []}, {"prompts": ["a"], "concurrency": 0}, {"prompts": [1]}]
)
async def test_wrong_arguments_are_a_validation_error(
    client: BridgeProcess, wrong: dict[str, object]
) -> None:
    assert (await client.error(BATCH, wrong))["type"] == "validation_error"


async def test_five_short_answers_take_few_bytes(client: BridgeProcess, api: Simulator) -> None:
    result = await client.call(BATCH, {"prompts": [f"Number {number}, in 9 words" for number in range(5)]})

    said = len("".join(item["content"] for item in result["structuredContent"]["results"]))
    assert len(json.dumps(result)) < 2 * said + 1200


async def test_the_same_failure_is_told_once(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(status=400), Fault(status=400), Fault(status=402))
    arguments = {"prompts": ["a", "b", "c", "d"], "concurrency": 1}
    result = (await client.call(BATCH, arguments))["structuredContent"]

    assert [item.get("error") for item in result["results"]] == [
        *("INVALID_REQUEST", "INVALID_REQUEST", "BILLING_REQUIRED"),
        None,
    ]
    assert [(one["indexes"], one["error"]["code"]) for one in result["errors"]] == [
        ([0, 1], "INVALID_REQUEST"),
        ([2], "BILLING_REQUIRED"),
    ]
    # What to do about it is said once, and not in the messages.
    assert [step.split(";")[0] for step in result["next"]] == [
        "Correct the arguments",
        "Look at the billing page of the account",
    ]
    assert not any("Correct" in one["error"]["message"] for one in result["errors"])


async def test_a_batch_in_which_everything_failed_is_an_error(client: BridgeProcess, api: Simulator) -> None:
    api.faults.always(Fault(status=402))
    error = await client.error(BATCH, {"prompts": ["a", "b", "c"]})

    assert (error["type"], error["code"]) == ("auth_error", "BILLING_REQUIRED")
    assert error["message"].startswith("All 3 prompts failed. The account at the Mercury API cannot pay")
    assert error["message"].count("cannot pay") == 1


async def test_answers_that_all_failed_are_not_lost(tmp_path: Path) -> None:
    arguments = {"prompts": ["a", "b"], "response_format": {"type": "json_object"}}
    async with answering(200, completion(), tmp_path) as client:
        error = error_of(await client.call(BATCH, arguments))

    assert error["code"] == "FORMAT_MISMATCH"
    assert json.loads(error["content"]) == [{"index": 0, "content": "hi"}, {"index": 1, "content": "hi"}]


async def test_a_cut_answer_says_so_in_its_item(client: BridgeProcess, api: Simulator) -> None:
    result = (await client.call(BATCH, {"prompts": ["a"], "max_tokens": 2}))["structuredContent"]

    assert "max_tokens" in result["results"][0]["incomplete"]


async def test_costs_have_no_noise_at_their_end(client: BridgeProcess, api: Simulator) -> None:
    result = (await client.call(BATCH, {"prompts": [f"p{n}" for n in range(7)]}))["structuredContent"]
    usage = (await client.call("mercury_usage"))["structuredContent"]

    for cost in (result["cost_usd"], usage["since_start"]["total"]["cost_usd"]):
        assert len(repr(round(cost * 1e12))) <= 12
        assert cost == round(cost, 12)


async def test_a_slow_batch_shows_signs_of_life_that_grow(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(delay=3.0, says="slow"))
    async with bridge_process(api.url, tmp_path, **{HEARTBEAT_SECONDS: "0.05"}) as client:
        await client.call("mercury_batch", {"prompts": ["quick", "slow"], "concurrency": 2}, progress=7)
        values = [notice["progress"] for notice in client.progress()]

    assert values == sorted(set(values))
    assert values[-1] == 2
    assert len([value for value in values if 1 < value < 2]) > 3
