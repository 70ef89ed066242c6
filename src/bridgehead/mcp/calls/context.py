"""Context: one request being served, as its handler sees it.

Progress, log messages, questions to the client, cancellation. The same calls work in every revision; features
that a revision lacks are not sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol

import msgspec
from msgspec import UNSET, Struct

from .. import jsonrpc
from ..connection import Client, Connection, Outlet
from ..errors import INVALID_PARAMS, Dialect, ProtocolError, ToolError, missing_capability, quote
from ..lifespan import Lifespan
from ..revisions import Revision
from ..values.argument_errors import reword
from .caller import Caller
from .input_requests import (
    Elicited,
    InputRequest,
    Root,
    Sampled,
    SamplingMessage,
    elicitation,
    list_roots,
    sampling,
)
from .params import EMPTY, RequestMeta

if TYPE_CHECKING:
    # At run time each is imported by the method that asks: a server that asks nothing starts without them.
    from typing_extensions import TypeVar

    State = TypeVar("State", default=Any)

    class TaskRun(Protocol):
        """The task that a call may become; from then on it takes the handler's progress and questions."""

        @property
        def is_detached(self) -> bool:
            """Whether the call has become a task."""

        async def detach(self) -> bool:
            """Continue as a task; False if the limit of tasks is reached."""

        def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
            """Make progress the task's status message."""

        async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
            """Ask the client, and wait for its updates."""

else:
    from typing import TypeVar

    State = TypeVar("State")

_INFINITE = float("inf")
# Shared by all calls and never changed: two dicts per call are measurable.
_NO_ANSWERS: dict[str, Any] = {}
LOG_LEVELS = {
    name: rank
    for rank, name in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    )
}


def check_level(level: str) -> str:
    """Refuse a log level that does not exist."""
    if level not in LOG_LEVELS:
        raise ProtocolError(
            INVALID_PARAMS, f"Unknown log level '{quote(level)}'; one of {', '.join(LOG_LEVELS)}"
        )
    return level


class InputRequired(BaseException):
    """Unwinds a handler of the stateless era whose questions have no answers yet.

    Not an `Exception`, so that a tool's own `except Exception` does not swallow it.
    """

    def __init__(self, input_requests: dict[str, InputRequest]) -> None:
        super().__init__()
        self.input_requests = input_requests


class BecameTask(Exception):
    """Ends the request of a call that continues as a task. Not a failure: it carries the answer."""

    def __init__(self, described: dict[str, Any]) -> None:
        super().__init__()
        self.described = described


def find_input_requests(error: BaseException) -> dict[str, InputRequest]:
    """Return the questions of an `InputRequired` or a group of them; empty for any other error."""
    if isinstance(error, InputRequired):
        return error.input_requests
    if not isinstance(error, BaseExceptionGroup) or error.split(InputRequired)[1] is not None:
        return {}
    return {key: request for part in error.exceptions for key, request in find_input_requests(part).items()}


class Context(Generic[State]):
    """One request being served."""

    __slots__ = (
        "_answers",
        "_last_progress",
        "_meta",
        "_used",
        "arguments",
        "attributes",
        "cancelled",
        "client",
        "connection",
        "dialect",
        "lifespan",
        "method",
        "outlet",
        "request_id",
        "revision",
        "run",
        "task",
    )

    def __init__(
        self,
        request_id: jsonrpc.RequestId,
        method: str,
        client: Client,
        connection: Connection,
        outlet: Outlet,
        *,
        lifespan: Lifespan,
        dialect: Dialect,
        meta: RequestMeta | None,
    ) -> None:
        self.request_id = request_id
        self.method = method
        self.client = client
        self.revision: Revision = client.revision
        self.task: asyncio.Task[Any] | None = None
        self.cancelled = False
        self.run: TaskRun | None = None
        """The task that this call may become, or has become."""
        self.connection = connection
        self.outlet = outlet
        self.lifespan = lifespan
        """The lifespan of the bridge whose part serves the request."""
        self.dialect = dialect
        """Words the failures of this request."""
        self.arguments: msgspec.Raw = EMPTY
        """A tool's arguments, undecoded."""
        self.attributes: dict[str, Any] | None = None
        """Attributes for the span of this call; see `annotate`."""
        self._meta = meta
        self._last_progress = -_INFINITE
        self._answers = _NO_ANSWERS
        self._used = _NO_ANSWERS

    @property
    def state(self) -> State:
        """The value of the bridge's lifespan."""
        value: State = self.lifespan.value
        return value

    @property
    def principal(self) -> str | None:
        """The authenticated caller; None if the transport does not authenticate."""
        return self.connection.principal

    @property
    def caller(self) -> Caller | None:
        """Who sent this request over HTTP; None over stdio."""
        describe: Callable[[], Caller] | None = getattr(self.outlet, "describe_caller", None)
        if describe is not None:
            return describe()
        # In a batch, and over HTTP+SSE, no scopes are known: tools that need one refuse.
        connection = self.connection
        return Caller(connection.principal) if connection.caller else None

    @property
    def progress_token(self) -> jsonrpc.RequestId | None:
        """The client's token for progress notifications; None if it wants none."""
        meta = self._meta
        return None if meta is None or meta.progress_token is UNSET else meta.progress_token

    @property
    def wants_progress(self) -> bool:
        """Whether progress goes anywhere: the client asked for it, or the call may become a task."""
        meta = self._meta
        return self.run is not None or (meta is not None and meta.progress_token is not UNSET)

    @property
    def idempotency_key(self) -> str | None:
        """The client's key; equal for a repeated request, so that a handler can act once."""
        meta = self._meta
        return None if meta is None or meta.idempotency_key is UNSET else meta.idempotency_key

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context that came with the request: in its `_meta`, or else in HTTP headers."""
        meta = self._meta
        if meta is None or meta.traceparent is UNSET:
            from_transport: dict[str, str] = getattr(self.outlet, "trace", {})
            return from_transport
        members = {"traceparent": meta.traceparent, "tracestate": meta.tracestate, "baggage": meta.baggage}
        return {name: value for name, value in members.items() if isinstance(value, str)}

    def annotate(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes to the span of this call; use the names of OpenTelemetry's conventions."""
        self.attributes = {**(self.attributes or {}), **attributes}

    @property
    def is_open(self) -> bool:
        """Whether the request still waits for its answer; afterwards nothing may be sent for it."""
        return not self.cancelled and self.connection.in_flight.get(self.request_id) is self

    def cancel(self) -> None:
        """Stop the work; no answer is sent."""
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()

    def is_interrupted(self, error: BaseException) -> bool:
        """Whether an error is a cancellation from outside, not one of the handler's own."""
        if isinstance(error, asyncio.CancelledError):
            return self.task is None or self.task.cancelling() > 0
        # A coroutine that is closed gets a GeneratorExit while no task runs it.
        return isinstance(error, GeneratorExit) and not self._is_running()

    def _is_running(self) -> bool:
        try:
            return self.task is not None and asyncio.current_task() is self.task
        except RuntimeError:  # there is no event loop any more
            return False

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send progress if the client asked for it. Values that do not grow are dropped.

        In a task, progress becomes the status message.
        """
        if self.run is not None and self.run.is_detached:
            self.run.report_progress(progress, total, message)
            return
        token = self.progress_token
        if token is None or not self._last_progress < progress < _INFINITE:
            return
        self._last_progress = progress
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and self.revision.progress_messages:
            params["message"] = message
        await self.notify("notifications/progress", params)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send the client a log message if it is at or above the client's level."""
        minimum = self.client.log_level
        if minimum is None or LOG_LEVELS[level] < LOG_LEVELS[minimum]:
            return
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        await self.notify("notifications/message", params)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send the client a notification that belongs to this request; none once it is over."""
        await self.send(jsonrpc.notification(method, params))

    async def send(self, message: bytes) -> None:
        """Send the client an encoded message that belongs to this request; none once it is over."""
        if self.is_open:
            await self.outlet.send(message)

    async def close_stream(self) -> None:
        """Close the HTTP response stream; a client that can resume reconnects for the rest."""
        if self.is_open:
            await self.outlet.close_stream()

    async def elicit(
        self, message: str, form: type[Struct] | dict[str, Any], *, key: str = "elicitation"
    ) -> Elicited:
        """Ask the user to fill in a form."""
        answer: Elicited = (await self.ask({key: elicitation(message, form)}))[key]
        return answer

    async def sample(
        self, messages: Sequence[SamplingMessage], *, max_tokens: int, key: str = "sampling", **options: Any
    ) -> Sampled:
        """Ask the client's model for a completion."""
        answer: Sampled = (await self.ask({key: sampling(messages, max_tokens=max_tokens, **options)}))[key]
        return answer

    async def roots(self, *, key: str = "roots") -> list[Root]:
        """Ask which folders and files the client has opened."""
        answer: list[Root] = (await self.ask({key: list_roots()}))[key]
        return answer

    def can_ask(self, request: InputRequest) -> bool:
        """Whether this client supports this kind of request."""
        return request.is_defined_in(self.revision) and request.is_possible_for(self.client.capabilities)

    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Ask several questions at once; returns the answers by the same keys.

        In the stateless era the handler is run again from its start once the answers are there, so ask before
        you act; in a task it waits. Keys identify questions across those runs: use each only once in a
        handler.
        """
        for request in requests.values():
            if not self.can_ask(request):
                raise self._incapable(".".join(request.capability), request.required_capabilities)
        if self.run is not None and self.run.is_detached:
            return await self.run.ask(requests)
        if self.revision.stateless:
            answers: dict[str, Any] = {}
            missing: dict[str, InputRequest] = {}
            for key, request in requests.items():
                if key not in self._answers:
                    missing[key] = request
                    continue
                answers[key] = self._read_answer(
                    request, self._answers[key], f"inputResponses.{key} does not fit what was asked"
                )
                self._used = {**self._used, key: self._answers[key]}
            if missing:
                raise InputRequired(missing)
            return answers
        if not self.is_open:
            raise ToolError("The request has ended, so the client can no longer be asked.")
        if not requests:
            return {}
        pending = [asyncio.ensure_future(self._ask_now(request)) for request in requests.values()]
        try:
            return dict(zip(requests, await asyncio.gather(*pending), strict=True))
        finally:
            for answer in pending:  # if one failed, withdraw the other questions
                answer.cancel()
            await asyncio.wait(pending)

    def require_extension(self, identifier: str) -> dict[str, Any]:
        """Return the settings that the client declared for an extension; refuse a client that did not."""
        settings = self.client.extensions.get(identifier)
        if settings is None:
            raise self.miss_extension(identifier)
        return settings

    def miss_extension(self, identifier: str) -> ProtocolError | ToolError:
        """Make the error for a client that has not declared an extension."""
        return self._incapable(f"extensions.{identifier}", {"extensions": {identifier: {}}})

    def _incapable(self, what: str, required: dict[str, Any]) -> ProtocolError | ToolError:
        failure = missing_capability(what, required)
        return failure if self.revision.stateless else ToolError(failure.message)

    async def _ask_now(self, request: InputRequest) -> Any:
        result = await self.connection.ask(self.outlet, request.method, request.params_in(self.revision))
        failure = f"The client's answer to {request.method} does not fit what was asked"
        return self._read_answer(request, result, failure)

    def _read_answer(self, request: InputRequest, result: Any, failure: str) -> Any:
        try:
            return request.read(result)
        except msgspec.ValidationError as error:
            message = f"{failure}: {reword(str(error), 'the answer')}"
            # In the stateless era answers are parameters of the request, so this is the request's fault.
            if self.revision.stateless:
                raise ProtocolError(INVALID_PARAMS, message) from error
            raise ToolError(message) from error

    async def detach(self) -> bool:
        """Continue as a task from here, if the tool allows it and the client supports tasks.

        Before this, a question ends the request, and its answer runs the handler again from its start. After
        it, the handler waits for answers. Returns whether this is a task now.
        """
        return False if self.run is None else await self.run.detach()

    def supply_answers(self, answers: dict[str, Any]) -> None:
        """Take in the answers that came back with a retried request."""
        self._answers = answers

    @property
    def used_answers(self) -> dict[str, Any]:
        """The answers that the handler has used so far, undecoded."""
        return self._used
