"""The official Python client with the tasks extension: its own extension points judge what our tasks say.

The client has no tasks of its own, but everything an extension needs: a claimed result, requests that mirror
their name, bound notifications. All of it is parsed and checked by the client.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Literal

import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client import Client, ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from pydantic import Field

from tests.interop.python_peer import SECONDS, SERVER, Way, transport
from tests.interop.server_process import serving
from tests.support.waiting import until

TASKS = "io.modelcontextprotocol/tasks"
WAYS = pytest.mark.parametrize("way", [Way("http", "2026-07-28"), Way("stdio", "2026-07-28")], ids=str)


class Task(types.Result):
    task_id: str = Field(alias="taskId")
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = Field(alias="statusMessage", default=None)
    created_at: str = Field(alias="createdAt")
    last_updated_at: str = Field(alias="lastUpdatedAt")
    ttl_ms: int | None = Field(alias="ttlMs")
    poll_interval_ms: int = Field(alias="pollIntervalMs")


class CreatedTask(Task):
    result_type: Literal["task"] = Field(alias="resultType")


class SeenTask(Task):
    result_type: Literal["complete"] = Field(alias="resultType")
    result: types.CallToolResult | None = None
    input_requests: dict[str, Any] | None = Field(alias="inputRequests", default=None)


class ToldTask(types.NotificationParams):
    task_id: str = Field(alias="taskId")
    status: str
    status_message: str | None = Field(alias="statusMessage", default=None)
    result: types.CallToolResult | None = None


class TaskParams(types.RequestParams):
    task_id: str = Field(alias="taskId")
    input_responses: dict[str, Any] | None = Field(alias="inputResponses", default=None)


class TaskRequest(types.Request[TaskParams, str]):
    name_param: ClassVar[str | None] = "taskId"


class ListenRequest(types.Request[dict[str, Any], Literal["subscriptions/listen"]]):
    method: Literal["subscriptions/listen"] = "subscriptions/listen"


class TaskExtension(ClientExtension):
    """Polls a task to its end, answers what it asks, and notes what is told of it."""

    identifier = TASKS

    def __init__(self, *, cancels: bool = False, listens: bool = False) -> None:
        self.created: list[CreatedTask] = []
        self.told: list[ToldTask] = []
        self._cancels = cancels
        self._listens = listens

    def claims(self) -> list[ResultClaim[CreatedTask]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self._resolve)]

    def notifications(self) -> list[NotificationBinding[ToldTask]]:
        return [NotificationBinding(method="notifications/tasks", params_type=ToldTask, handler=self._hear)]

    async def _hear(self, task: ToldTask) -> None:
        self.told.append(task)

    async def _resolve(self, created: CreatedTask, context: ClaimContext) -> types.CallToolResult:
        self.created.append(created)
        ask = asyncio.create_task(self._listen(created.task_id, context)) if self._listens else None
        if self._cancels:
            await _send("tasks/cancel", created.task_id, context)
        try:
            return await self._poll(created.task_id, context)
        finally:
            if ask is not None:
                await until(lambda: any(told.status == "completed" for told in self.told))
                ask.cancel()

    async def _listen(self, task_id: str, context: ClaimContext) -> None:
        request = ListenRequest(params={"notifications": {"taskIds": [task_id]}})
        await context.session.send_request(request, types.Result)

    async def _poll(self, task_id: str, context: ClaimContext) -> types.CallToolResult:
        while True:
            task = await _send("tasks/get", task_id, context)
            if task.input_requests:
                answers = {
                    key: {"action": "accept", "content": {"name": "Ann"}} for key in task.input_requests
                }
                await _send("tasks/update", task_id, context, answers)
            elif task.result is not None:
                return task.result
            elif task.status == "cancelled":
                return types.CallToolResult(content=[], is_error=True)
            await asyncio.sleep(0.02)


async def _send(
    method: str, task_id: str, context: ClaimContext, answers: dict[str, Any] | None = None
) -> SeenTask:
    request = TaskRequest(method=method, params=TaskParams(taskId=task_id, inputResponses=answers))
    kind: Any = SeenTask if method == "tasks/get" else types.Result
    seen: SeenTask = await context.session.send_request(request, kind)
    return seen


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(SERVER, "--http") as address:
        yield address


@asynccontextmanager
async def connected(way: Way, address: str, extension: TaskExtension) -> AsyncIterator[Client]:
    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        raise AssertionError("a task asks by its own questions")

    async with Client(
        transport(way, address),
        mode=way.mode,
        read_timeout_seconds=SECONDS,
        extensions=[extension],
        elicitation_callback=elicit,
    ) as client:
        yield client


@WAYS
async def test_a_slow_call_becomes_a_task_whose_result_the_client_takes(way: Way, address: str) -> None:
    extension = TaskExtension()
    async with connected(way, address, extension) as client:
        result = await client.call_tool("slow_count", {"n": 80})

    assert result.structured_content == {"counted": 80}
    (created,) = extension.created
    assert created.status == "working"


@WAYS
async def test_a_quick_call_is_answered_directly(way: Way, address: str) -> None:
    extension = TaskExtension()
    async with connected(way, address, extension) as client:
        result = await client.call_tool("slow_count", {"n": 1})

    assert result.structured_content == {"counted": 1}
    assert extension.created == []


@WAYS
async def test_a_task_asks_and_goes_on_with_the_answer(way: Way, address: str) -> None:
    async with connected(way, address, TaskExtension()) as client:
        result = await client.call_tool("ask_name", {})

    (block,) = result.content
    assert isinstance(block, types.TextContent)
    assert block.text == "Hello, Ann!"


@WAYS
async def test_a_cancelled_task_stops_counting(way: Way, address: str) -> None:
    async with connected(way, address, TaskExtension(cancels=True)) as client:
        before = (await client.call_tool("cancellations", {})).structured_content
        result = await client.call_tool("slow_count", {"n": 1000})
        after = (await client.call_tool("cancellations", {})).structured_content

    assert result.is_error
    assert before is not None
    assert after == {"count": before["count"] + 1}


@WAYS
async def test_a_listen_stream_tells_of_the_task_until_it_is_done(way: Way, address: str) -> None:
    extension = TaskExtension(listens=True)
    async with connected(way, address, extension) as client:
        await client.call_tool("slow_count", {"n": 80})

    assert {task.task_id for task in extension.told} == {extension.created[0].task_id}
    assert any(task.status == "working" for task in extension.told)
    done = [task for task in extension.told if task.status == "completed"]
    assert done[-1].result is not None
    assert done[-1].result.structured_content == {"counted": 80}


@WAYS
async def test_an_unknown_task_is_refused_by_its_code(way: Way, address: str) -> None:
    async with connected(way, address, TaskExtension()) as client:
        context = ClaimContext(session=client.session, tool_name="", read_timeout_seconds=None)
        with pytest.raises(MCPError) as refused:
            await _send("tasks/get", "unknown", context)

    assert refused.value.error.code == types.INVALID_PARAMS
