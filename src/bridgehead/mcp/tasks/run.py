"""Run: a task in the process that runs it: the questions and progress of its handler, and its end.

A run begins with the call of a tool, before it is known whether the call becomes a task. Until it is
detached, the call is like any other. No I/O here: the manager is notified of each change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .. import jsonrpc
from ..calls.context import Context
from ..calls.input_requests import InputRequest
from ..errors import INVALID_PARAMS, ProtocolError, ToolError
from ..values.argument_errors import reword
from .record import Status, TaskRecord

Conclude = Callable[["asyncio.Task[Any]"], bytes]
"""Returns the result of finished work, encoded; raises `ProtocolError` if it failed that way."""
_LONGEST_MESSAGE = 1000


class TaskRun:
    """The work of one tool call, before and after it becomes a task."""

    def __init__(
        self, context: Context[Any], conclude: Conclude, clock: Callable[[], float], max_questions: int
    ) -> None:
        self.context = context
        self.conclude = conclude
        self.input_bytes = 0
        """The memory of its arguments, once it is a task."""
        self.record: TaskRecord | None = None
        """None until it is a task."""
        self.work: asyncio.Task[Any] | None = None
        loop = asyncio.get_running_loop()
        self.wanted: asyncio.Future[None] = loop.create_future()
        """Done when the handler asks to continue as a task."""
        self._settled: asyncio.Future[bool] = loop.create_future()
        self._clock = clock
        self._max_questions = max_questions
        self._questions: dict[str, tuple[InputRequest, asyncio.Future[Any]]] = {}
        self._used: set[str] = set()
        # No notices until the run is a task.
        self._changed: Callable[[TaskRecord], None] = lambda _record: None
        self.is_closed = False
        """Whether `close` was called."""

    @property
    def is_detached(self) -> bool:
        """Whether it is a task: no request waits for its handler any more."""
        return self.record is not None

    async def detach(self) -> bool:
        """Continue as a task; False if it remains a call, because the limit of tasks is reached."""
        if not self.wanted.done():
            self.wanted.set_result(None)
        return await asyncio.shield(self._settled)

    def begin(self, record: TaskRecord, changed: Callable[[TaskRecord], None]) -> None:
        """Become a task."""
        self.record, self._changed = record, changed
        self._settle(is_task=True)

    def stay(self) -> None:
        """Remain a call: it ended within the grace time, or the limit of tasks is reached."""
        self._settle(is_task=False)

    def _settle(self, *, is_task: bool) -> None:
        if not self._settled.done():
            self._settled.set_result(is_task)

    # --- the handler -------------------------------------------------------------------------------------

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Make progress the task's status message."""
        text = message or (f"{progress:g}" if total is None else f"{progress:g} of {total:g}")
        record = self.record
        if record is not None and not self.is_closed and text != record.message:
            self._show(record.move(record.status, self._clock(), text[:_LONGEST_MESSAGE], record.payload))

    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Ask the client, and wait for its updates; returns the answers by the same keys.

        The task's time to live bounds the wait.
        """
        if len(self._questions) + len(requests) > self._max_questions:
            raise ToolError("Too many questions are waiting for the client's answer. Answer those first.")
        loop = asyncio.get_running_loop()
        names = {}
        for key in requests:
            names[key], number = key, 1
            while names[key] in self._used:  # a key may be used only once per task
                number += 1
                names[key] = f"{key}-{number}"
            self._used.add(names[key])
        answers = {key: loop.create_future() for key in requests}
        for key, request in requests.items():
            self._questions[names[key]] = (request, answers[key])
        self._show_questions()
        try:
            return dict(zip(answers, await asyncio.gather(*answers.values()), strict=True))
        finally:
            for key in names.values():
                self._questions.pop(key, None)
            self._show_questions()

    def take_answers(self, responses: Mapping[str, Any]) -> None:
        """Pass answers to the questions they belong to; ignore those to questions that are not open.

        If one is invalid, raise, accept none, and leave the questions open.
        """
        read = {}
        for key, response in responses.items():
            if key in self._questions:
                read[key] = self._read(key, self._questions[key][0], response)
        for key, value in read.items():
            _, answer = self._questions.pop(key)
            if not answer.done():
                answer.set_result(value)
        if read:
            self._show_questions()

    @staticmethod
    def _read(key: str, request: InputRequest, response: Any) -> Any:
        try:
            return request.read(response)
        except msgspec.ValidationError as error:
            problem = reword(str(error), "the answer")
            message = f"inputResponses.{key} does not fit what was asked: {problem}"
            raise ProtocolError(INVALID_PARAMS, message) from error

    def _show_questions(self) -> None:
        record = self.record
        if record is None or self.is_closed:
            return
        revision = self.context.revision
        open_ = {
            key: {"method": request.method, "params": request.params_in(revision)}
            for key, (request, _) in self._questions.items()
        }
        status: Status = "input_required" if open_ else "working"
        payload = jsonrpc.encode(open_) if open_ else b""
        if (status, payload) != (record.status, record.payload):
            self._show(record.move(status, self._clock(), record.message, payload))

    # --- how it ends ---------------------------------------------------------------------------------------

    def close(self) -> bool:
        """Cancel the work and what it awaits on the far side; False if that was done before.

        From now on only the manager changes the record.
        """
        if self.is_closed:
            return False
        self.is_closed = True
        if self.work is not None and not self.work.done():
            self.work.cancel()
        return True

    def _show(self, record: TaskRecord) -> None:
        self.record = record
        self._changed(record)
