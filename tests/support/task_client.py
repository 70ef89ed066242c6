"""A client that can take tasks, in memory: owns how a test makes one, asks for it and waits for its end.

Every task that is seen is checked against what the extension defines for its status.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from bridgehead.mcp import Bridge, Limits, in_memory
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.features.tools import TASKS_EXTENSION
from bridgehead.mcp.in_memory import InMemoryClient
from bridgehead.mcp.revisions import V2026_07_28
from tests.support.waiting import PATIENCE

Json = dict[str, Any]
CAPABILITIES: Json = {"extensions": {TASKS_EXTENSION: {}}, "elicitation": {}}
ENDED = {"completed", "failed", "cancelled"}
_ALWAYS = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
_PAYLOADS = {"input_required": "inputRequests", "completed": "result", "failed": "error"}


def check_task(task: Json, further: set[str]) -> None:
    """Check that a task has what its status brings, and nothing else."""
    payload = _PAYLOADS.get(task["status"])
    expected = _ALWAYS | further | ({payload} if payload else set())
    assert set(task) - {"statusMessage"} == expected, task
    assert task["status"] in {"working", *_PAYLOADS, "cancelled"}, task
    assert datetime.fromisoformat(task["createdAt"]) <= datetime.fromisoformat(task["lastUpdatedAt"]), task
    assert all(isinstance(task[name], int) and task[name] > 0 for name in ("ttlMs", "pollIntervalMs")), task


class TaskClient(InMemoryClient):
    """A client of the stateless era that declares tasks with each request."""

    async def make(self, tool: str, arguments: Json | None = None) -> str:
        """Call a tool whose call becomes a task, and return the task's id."""
        created = await self.call(tool, arguments)
        assert created["resultType"] == "task", created
        check_task(created, {"resultType", "_meta"})
        task_id: str = created["taskId"]
        return task_id

    async def get(self, task_id: str) -> Json:
        """Ask how a task stands."""
        task: Json = await self.request("tasks/get", {"taskId": task_id})
        assert task["resultType"] == "complete", task
        check_task(task, {"resultType", "_meta"})
        return task

    async def reach(self, task_id: str, *statuses: str) -> Json:
        """Wait until a task is in one of these states."""
        async with asyncio.timeout(PATIENCE):
            while (task := await self.get(task_id))["status"] not in statuses:
                await asyncio.sleep(0.002)
        return task

    async def end(self, task_id: str) -> Json:
        """Wait until a task has ended."""
        return await self.reach(task_id, *ENDED)

    async def update(self, task_id: str, responses: Json) -> None:
        """Answer what a task asks."""
        result = await self.request("tasks/update", {"taskId": task_id, "inputResponses": responses})
        assert set(result) == {"resultType", "_meta"}, result
        assert result["resultType"] == "complete"

    async def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        result = await self.request("tasks/cancel", {"taskId": task_id})
        assert set(result) == {"resultType", "_meta"}, result
        assert result["resultType"] == "complete"


def join(dispatcher: Dispatcher, principal: str | None = None) -> TaskClient:
    """Make one more client of a dispatcher."""
    client = TaskClient(dispatcher, V2026_07_28, CAPABILITIES)
    client.connection.principal = principal
    return client


@asynccontextmanager
async def connect(bridge: Bridge[Any], limits: Limits | None = None) -> AsyncIterator[TaskClient]:
    """Connect to a bridge as a client that can take tasks."""
    async with in_memory.connect(bridge, revision=V2026_07_28, limits=limits) as plain:
        yield join(plain.dispatcher)
