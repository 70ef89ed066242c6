"""Listen streams with task ids: each change of a task is told whole, to those who may see it."""

import asyncio
from typing import Any

import pytest

from bridgehead.mcp import ProtocolError
from bridgehead.mcp.errors import MISSING_CAPABILITY
from tests.mcp.tasks.task_bridge import Workshop, accept
from tests.support.task_client import TaskClient, check_task, connect, join
from tests.support.waiting import until

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def listen(client: TaskClient, *task_ids: str) -> tuple[int, asyncio.Task[Any]]:
    return client.start("subscriptions/listen", {"notifications": {"taskIds": list(task_ids)}})


def notifications(client: TaskClient, method: str = "notifications/tasks") -> list[Any]:
    return [message["params"] for message in client.sent if message.get("method") == method]


async def test_a_stream_tells_how_a_task_stands_and_whatever_changes() -> None:
    async with connect(Workshop().bridge) as client:
        task_id = await client.make("ask_both")
        stream, _ = listen(client, task_id)
        await until(lambda: notifications(client) and notifications(client)[-1]["status"] == "input_required")
        await client.update(task_id, {"a": accept("Ann"), "b": accept("Bob")})
        await until(lambda: notifications(client)[-1]["status"] == "completed")
        task = await client.get(task_id)

    for told in notifications(client):
        check_task({name: value for name, value in told.items() if name != "_meta"}, set())
        assert told["_meta"] == {SUBSCRIPTION: stream}
    last = {name: value for name, value in notifications(client)[-1].items() if name != "_meta"}
    assert last == {name: value for name, value in task.items() if name not in ("_meta", "resultType")}


async def test_a_task_that_has_ended_before_is_told_too() -> None:
    async with connect(Workshop().bridge) as client:
        task_id = await client.make("fail")
        await client.end(task_id)
        listen(client, task_id)
        await until(lambda: notifications(client))

    assert notifications(client)[0]["status"] == "completed"


async def test_only_tasks_that_the_caller_has_are_accepted() -> None:
    async with connect(Workshop().bridge) as client:
        ann, eve = join(client.dispatcher, "ann"), join(client.dispatcher, "eve")
        own, others = await ann.make("work"), await eve.make("work")
        listen(ann, own, others, "unknown", own)
        await until(lambda: notifications(ann, ACKNOWLEDGED))

    assert notifications(ann, ACKNOWLEDGED)[0]["notifications"] == {"taskIds": [own]}
    assert {task["taskId"] for task in notifications(ann)} <= {own}


async def test_a_client_that_did_not_declare_tasks_cannot_listen_for_them() -> None:
    async with connect(Workshop().bridge) as client:
        client.capabilities = {}
        with pytest.raises(ProtocolError, match="tasks") as refused:
            await client.request("subscriptions/listen", {"notifications": {"taskIds": []}})

    assert refused.value.code == MISSING_CAPABILITY


async def test_a_stream_that_ends_leaves_no_watcher_behind() -> None:
    async with connect(Workshop().bridge) as client:
        task_id = await client.make("work")
        stream, listening = listen(client, task_id)
        await until(lambda: notifications(client))
        await client.notify("notifications/cancelled", {"requestId": stream})
        await listening

        assert client.dispatcher.tasks._watchers == {}  # noqa: SLF001
