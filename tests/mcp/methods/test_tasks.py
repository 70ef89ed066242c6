"""Tasks as clients see them: made by calls, asked for, answered, cancelled, and nobody else's."""

import asyncio
import base64
from typing import Any

import pytest

from bridgehead.mcp import Limits, ProtocolError, combine, restrict
from bridgehead.mcp.errors import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY, OVERLOADED
from bridgehead.mcp.features.tools import TASKS_EXTENSION
from bridgehead.mcp.revisions import HANDSHAKE
from tests.mcp.tasks.task_bridge import Workshop, accept
from tests.support import checked
from tests.support.task_client import CAPABILITIES, connect, join
from tests.support.waiting import until

UNKNOWN = "no-such-task"


def text(task: dict[str, Any]) -> str:
    found: str = task["result"]["content"][0]["text"]
    return found


# --- making one -----------------------------------------------------------------------------------


async def test_a_call_becomes_a_task_that_works_and_completes() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        task_id = await client.make("work")
        working = await client.get(task_id)
        workshop.open.set()
        done = await client.end(task_id)

    assert working["status"] == "working"
    assert (done["status"], text(done)) == ("completed", "done")
    assert done["result"]["resultType"] == "complete"
    assert "_meta" not in done["result"]
    assert len(base64.urlsafe_b64decode(task_id)) >= 16


@pytest.mark.parametrize("tool", ["quick", "plain"])
async def test_what_is_quick_is_answered_directly(tool: str) -> None:
    async with connect(Workshop().bridge) as client:
        result = await client.call(tool)

    assert (result["resultType"], result["content"][0]["text"]) == ("complete", tool)


async def test_a_call_that_outlasts_its_grace_becomes_a_task_without_beginning_again() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        task_id = await client.make("maybe")
        workshop.open.set()

        assert text(await client.end(task_id)) == "done"
    assert workshop.begun == 1


async def test_a_left_over_task_parameter_is_ignored() -> None:
    async with connect(Workshop().bridge) as client:
        result = await client.call("quick", task={"ttl": 5})

    assert result["resultType"] == "complete"


async def test_arguments_that_do_not_fit_are_told_at_once() -> None:
    async with connect(Workshop().bridge) as client:
        result = await client.call("work", {"what": 1})

    assert result["isError"]


# --- clients that cannot take one -----------------------------------------------------------------


async def test_tasks_are_declared_where_they_exist() -> None:
    workshop = Workshop()
    for bridge in (workshop.bridge, combine("all", "1", [workshop.bridge])):
        async with checked.connect(bridge, revision=checked.STATELESS) as client:
            found = await client.request("server/discover")
        async with checked.connect(bridge) as older:
            hello = await older.request("initialize", {})
        assert found["capabilities"]["extensions"] == {TASKS_EXTENSION: {}}
        assert "extensions" not in hello["capabilities"]


async def test_a_view_without_tools_that_become_tasks_has_none() -> None:
    view = restrict(Workshop().bridge, lambda _tool: False)
    async with connect(view) as client:
        found = await client.request("server/discover")
        with pytest.raises(ProtocolError, match="Method not found") as refused:
            await client.get(UNKNOWN)

    assert "extensions" not in found["capabilities"]
    assert refused.value.code == METHOD_NOT_FOUND


@pytest.mark.parametrize("revision", [*HANDSHAKE.values(), checked.STATELESS], ids=str)
async def test_an_optional_task_is_a_plain_call_for_clients_that_did_not_declare_tasks(revision: Any) -> None:
    workshop = Workshop()
    # A declaration at an older revision does not count: the extension does not exist there.
    capabilities = {} if revision.stateless else CAPABILITIES
    async with checked.connect(workshop.bridge, revision=revision, capabilities=capabilities) as client:
        _, call = client.start("tools/call", {"name": "maybe", "arguments": {}})
        await until(lambda: workshop.begun)
        await asyncio.sleep(0.05)  # longer than its grace
        workshop.open.set()

        assert (await call)["result"]["content"][0]["text"] == "done"


async def test_a_required_task_is_refused_to_clients_that_did_not_declare_tasks() -> None:
    workshop = Workshop()
    async with checked.connect(workshop.bridge, revision=checked.STATELESS) as client:
        error = await client.error("tools/call", {"name": "work", "arguments": {}})
    async with checked.connect(workshop.bridge, capabilities=CAPABILITIES) as older:
        result = await older.call("work")

    assert error["code"] == MISSING_CAPABILITY
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    assert result["isError"]
    assert workshop.begun == 0


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_who_did_not_declare_tasks_may_not_ask_for_one(method: str) -> None:
    params = {"taskId": UNKNOWN, "inputResponses": {}}
    async with checked.connect(Workshop().bridge, revision=checked.STATELESS) as client:
        assert (await client.error(method, params))["code"] == MISSING_CAPABILITY
    async with checked.connect(Workshop().bridge, capabilities=CAPABILITIES) as older:
        assert (await older.error(method, params))["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
async def test_methods_of_the_experiment_do_not_exist(method: str) -> None:
    async with connect(Workshop().bridge) as client:
        with pytest.raises(ProtocolError, match="Method not found"):
            await client.request(method, {"taskId": UNKNOWN})


# --- whose it is ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("has_ended", [False, True])
async def test_another_callers_task_is_unknown(method: str, has_ended: bool) -> None:  # noqa: FBT001
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        ann, eve = join(client.dispatcher, "ann"), join(client.dispatcher, "eve")
        task_id = await ann.make("work")
        if has_ended:
            workshop.open.set()
            await ann.end(task_id)
        with pytest.raises(ProtocolError) as refused:
            await eve.request(method, {"taskId": task_id, "inputResponses": {}})
        with pytest.raises(ProtocolError) as unknown:
            await eve.request(method, {"taskId": UNKNOWN, "inputResponses": {}})
        status = (await ann.get(task_id))["status"]

    assert refused.value.code == unknown.value.code == INVALID_PARAMS
    assert str(refused.value).replace(task_id, UNKNOWN) == str(unknown.value)
    assert status == ("completed" if has_ended else "working")


async def test_a_task_belongs_to_the_view_that_made_it() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        task_id = await client.make("work")
        client.dispatcher.scope = "another view"
        with pytest.raises(ProtocolError, match="Unknown task"):
            await client.get(task_id)


# --- how it ends ----------------------------------------------------------------------------------


async def test_an_error_of_the_tool_completes_its_task() -> None:
    async with connect(Workshop().bridge) as client:
        task = await client.end(await client.make("fail"))

    assert (task["status"], text(task), task["result"]["isError"]) == (
        "completed",
        "It cannot be done.",
        True,
    )


async def test_an_error_of_the_protocol_fails_its_task() -> None:
    async with connect(Workshop().bridge) as client:
        task = await client.end(await client.make("refuse"))

    assert task["status"] == "failed"
    assert task["error"] == {"code": -32000, "message": "Not now.", "data": {"retry": 5}}
    assert task["statusMessage"] == "Not now."


async def test_a_bug_is_the_result_of_its_task_without_its_text() -> None:
    async with connect(Workshop().bridge) as client:
        task = await client.end(await client.make("bug"))

    assert task["status"] == "completed"
    assert task["result"]["isError"]
    assert "reference" in task["result"]["content"][0]["text"]
    assert "secret" not in str(task)


async def test_cancelling_stops_the_work() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        task_id = await client.make("work")
        await until(lambda: workshop.begun)
        await client.cancel(task_id)
        task = await client.get(task_id)
        await until(lambda: workshop.stopped)
        await client.cancel(task_id)
        await client.update(task_id, {"any": {}})

        assert (await client.get(task_id)) == task
    assert task["status"] == "cancelled"
    assert "statusMessage" in task


async def test_cancelling_what_has_ended_changes_nothing() -> None:
    async with connect(Workshop().bridge) as client:
        task_id = await client.make("fail")
        done = await client.end(task_id)
        await client.cancel(task_id)

        assert await client.get(task_id) == done


async def test_the_request_that_made_a_task_cannot_cancel_it() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        task_id = await client.make("maybe")
        await client.notify("notifications/cancelled", {"requestId": 1})
        client.connection.cancel_all()
        client.dispatcher.disconnect(client.connection)
        workshop.open.set()

        assert (await client.end(task_id))["status"] == "completed"
    assert workshop.stopped == 0


async def test_a_call_that_is_cancelled_within_its_grace_stops() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        request_id, call = client.start("tools/call", {"name": "patient", "arguments": {}})
        await until(lambda: workshop.begun)
        await client.notify("notifications/cancelled", {"requestId": request_id})

        assert await call is None
    assert workshop.stopped == 1


# --- asking and telling ---------------------------------------------------------------------------


async def test_a_task_asks_and_waits_for_updates() -> None:
    async with connect(Workshop().bridge) as client:
        task_id = await client.make("ask")
        first = await client.reach(task_id, "input_required")
        (key,) = first["inputRequests"]
        await client.update(task_id, {key: accept("Ann"), "unknown": 5})
        second = await client.reach(task_id, "input_required")
        (next_key,) = second["inputRequests"]
        await client.update(task_id, {key: accept("Eve")})  # answered already
        await client.update(task_id, {next_key: accept("Bob")})
        done = await client.end(task_id)

    assert first["inputRequests"][key]["method"] == "elicitation/create"
    assert next_key != key
    assert text(done) == "Ann and Bob"


async def test_a_part_of_the_answers_leaves_the_rest_open() -> None:
    async with connect(Workshop().bridge) as client:
        task_id = await client.make("ask_both")
        both = await client.reach(task_id, "input_required")
        await client.update(task_id, {"a": accept("Ann")})
        rest = await client.get(task_id)
        await client.update(task_id, {"b": accept("Bob")})
        done = await client.end(task_id)

    assert (set(both["inputRequests"]), set(rest["inputRequests"])) == ({"a", "b"}, {"b"})
    assert text(done) == "Ann and Bob"


async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays() -> None:
    async with connect(Workshop().bridge) as client:
        task_id = await client.make("ask_both")
        await client.reach(task_id, "input_required")
        with pytest.raises(ProtocolError, match=r"inputResponses\.b does not fit"):
            await client.update(task_id, {"a": accept("Ann"), "b": {"action": "accept", "content": {}}})
        task = await client.get(task_id)

    assert set(task["inputRequests"]) == {"a", "b"}


async def test_what_is_asked_before_the_task_is_answered_with_the_call_and_the_rest_in_the_task() -> None:
    async with connect(Workshop().bridge) as client:
        asked = await client.call("ask_then_work")
        created = await client.call(
            "ask_then_work",
            inputResponses={"elicitation": accept("Ann")},
            requestState=asked["requestState"],
        )
        task_id = created["taskId"]
        question = await client.reach(task_id, "input_required")
        await client.update(task_id, {"elicitation": accept("Bob")})
        done = await client.end(task_id)

    assert (asked["resultType"], created["resultType"]) == ("input_required", "task")
    assert question["inputRequests"]["elicitation"]["params"]["message"] == "Within?"
    assert text(done) == "Ann, Bob, True"


async def test_progress_is_the_status_message_and_nothing_else_is_sent() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        task_id = await client.make("tell")
        await until(lambda: client.dispatcher.tasks.find_running(task_id, "workshop\n\n").message)  # type: ignore[union-attr]
        before = await client.get(task_id)
        workshop.open.set()
        after = await client.end(task_id)

    assert (before["statusMessage"], after["statusMessage"]) == ("1 of 3", "nearly")
    assert not any("method" in message for message in client.sent)


# --- bounds ---------------------------------------------------------------------------------------


async def test_a_caller_with_too_many_tasks_is_told_so_and_others_are_not() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge, Limits(tasks_per_caller=2)) as client:
        ann, bob = join(client.dispatcher, "ann"), join(client.dispatcher, "bob")
        for _ in range(2):
            await ann.make("work")
        with pytest.raises(ProtocolError, match="You have 2 tasks, which is the limit") as refused:
            await ann.call("work")
        await bob.make("work")

    assert refused.value.code == OVERLOADED
    assert workshop.begun == 3


async def test_an_optional_task_without_room_is_answered_as_a_call() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge, Limits(tasks_per_caller=1)) as client:
        await client.make("work")
        _, call = client.start("tools/call", {"name": "maybe", "arguments": {}})
        await until(lambda: workshop.begun == 2)
        await asyncio.sleep(0.05)  # longer than its grace
        workshop.open.set()

        assert (await call)["result"]["content"][0]["text"] == "done"


async def test_a_result_that_is_too_large_fails_its_task_with_the_reason() -> None:
    async with connect(Workshop().bridge, Limits(task_bytes_per_caller=1000)) as client:
        task = await client.end(await client.make("much", {"size": 1000}))
        fine = await client.end(await client.make("much", {"size": 100}))

    assert (task["status"], task["error"]["code"]) == ("failed", OVERLOADED)
    assert "your tasks may keep 1000 bytes" in task["statusMessage"]
    assert fine["status"] == "completed"


@pytest.mark.parametrize("tool", ["work", "ask"])
async def test_a_task_ends_with_its_time_also_where_its_question_is_never_answered(tool: str) -> None:
    workshop = Workshop()
    async with connect(workshop.bridge, Limits(task_seconds=0.05)) as client:
        task_id = await client.make(tool)
        with pytest.raises(ProtocolError, match="Unknown task"):
            await client.reach(task_id, "never")
        with pytest.raises(ProtocolError, match="Unknown task"):
            await client.update(task_id, {"elicitation": accept("Ann")})

    assert workshop.stopped == workshop.begun
