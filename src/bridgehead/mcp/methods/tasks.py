"""Methods of tasks: `tasks/get`, `tasks/update`, `tasks/cancel`, listen streams, and a call as a task.

Decides which clients may ask, who owns a task, and how it looks on the wire. The manager does the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import jsonrpc
from ..calls.context import BecameTask, Context
from ..calls.params import TaskParams, UpdateTaskParams
from ..changes import TASKS, Listener
from ..errors import forget_frames
from ..failures import give_failure
from ..features.results import EMPTY_BODY, Body
from ..features.tools import TASKS_EXTENSION, Tool
from ..tasks.manager import TaskTerms
from ..tasks.record import TaskRecord

if TYPE_CHECKING:
    from ..dispatch import Dispatcher


def _check_client(context: Context[Any]) -> None:
    context.require_extension(TASKS_EXTENSION)


async def call_as_task(
    dispatcher: Dispatcher, context: Context[Any], tool: Tool, work: Coroutine[Any, Any, Any]
) -> Body:
    """Run a tool's call, within the request or as a task."""
    terms = TaskTerms(
        owner=dispatcher.owner_of(context),
        caller=context.principal or str(getattr(context.outlet, "caller", "")),
        is_required=tool.task == "required",
        grace_seconds=tool.task_grace_seconds,
    )
    outcome = await dispatcher.tasks.call(context, work, terms, partial(_conclude, context, tool))
    if isinstance(outcome, TaskRecord):
        raise BecameTask(_describe(dispatcher, outcome))
    return tool.encode(outcome, context.revision)


def _conclude(context: Context[Any], tool: Tool, work: asyncio.Task[Any]) -> bytes:
    """Return the result of a task's work, as the call would have returned it."""
    try:
        encoded, meta = tool.encode(work.result(), context.revision)
    except BaseException as error:  # noqa: BLE001 - a task always ends, whatever its tool raises
        encoded, meta = give_failure(context, error)
        forget_frames(error)
    head: dict[str, Any] = {"resultType": "complete"}
    if meta:
        head["_meta"] = meta
    opening = jsonrpc.encode(head)[:-1]
    return opening + (b"}" if encoded == b"{}" else b"," + encoded[1:])


def _describe(dispatcher: Dispatcher, record: TaskRecord) -> dict[str, Any]:
    return record.describe(dispatcher.limits.task_poll_seconds)


async def get_task(dispatcher: Dispatcher, context: Context[Any], params: TaskParams) -> Body:
    """Return a task's status."""
    _check_client(context)
    record = await dispatcher.tasks.find(params.task_id, dispatcher.owner_of(context))
    return jsonrpc.encode(_describe(dispatcher, record)), None


async def update_task(dispatcher: Dispatcher, context: Context[Any], params: UpdateTaskParams) -> Body:
    """Pass the client's answers to a task."""
    _check_client(context)
    await dispatcher.tasks.update(params.task_id, dispatcher.owner_of(context), params.input_responses)
    return EMPTY_BODY


async def cancel_task(dispatcher: Dispatcher, context: Context[Any], params: TaskParams) -> Body:
    """Cancel a task."""
    _check_client(context)
    await dispatcher.tasks.cancel(params.task_id, dispatcher.owner_of(context))
    return EMPTY_BODY


class TaskWatch:
    """The tasks that one listen stream watches."""

    def __init__(self, dispatcher: Dispatcher, context: Context[Any], listener: Listener) -> None:
        self._dispatcher = dispatcher
        self._owner = dispatcher.owner_of(context)
        self._listener = listener
        self._records: dict[str, TaskRecord] = {}
        """The newest unsent state of each task."""
        self.ids: list[str] = []

    async def begin(self, task_ids: list[str]) -> None:
        """Watch the tasks that exist; their current states are sent first."""
        for task_id in dict.fromkeys(task_ids):
            if await self._dispatcher.tasks.watch(task_id, self._owner, self._offer):
                self.ids.append(task_id)

    def _offer(self, record: TaskRecord) -> None:
        self._records[record.id] = record
        self._listener.push((TASKS, record.id))

    def describe(self, task_id: str) -> dict[str, Any]:
        """Return a changed task for the stream."""
        return _describe(self._dispatcher, self._records.pop(task_id))

    def end(self) -> None:
        """Stop watching."""
        for task_id in self.ids:
            self._dispatcher.tasks.unwatch(task_id, self._offer)
