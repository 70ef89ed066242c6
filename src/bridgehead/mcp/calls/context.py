"""Context: what a handler knows of the call it serves, and what it can do towards the client meanwhile.

Progress, log messages, questions to the client, its own cancellation. The same calls work in every revision;
where a revision has no such thing, nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol

import msgspec
from msgspec import UNSET, Struct

from .. import jsonrpc
from ..connection import Client, Connection, Outlet
from ..errors import INVALID_PARAMS, Dialect, ProtocolError, ToolError, missing_capability, quote
from ..lazy_imports import asyncio
from ..lifespan import Lifespan
from ..revisions import Revision
from .params import EMPTY, RequestMeta

if TYPE_CHECKING:
    # At run time each is imported by the method that asks: a server that asks nothing starts without them.
    from typing_extensions import TypeVar

    from .input_requests import Elicited, InputRequest, Root, Sampled, SamplingMessage

    State = TypeVar("State", default=Any)

    class TaskRun(Protocol):
        """The task that a call may become: what its handler tells and asks goes there once it has."""

        @property
        def is_detached(self) -> bool:
            """Whether it is a task by now."""

        async def detach(self) -> bool:
            """Go on as a task; False where there is no room for one."""

        def tell(self, progress: float, total: float | None, message: str | None) -> None:
            """Make progress the task's status message."""

        async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
            """Ask the client, and wait for its updates."""

else:
    from typing import TypeVar

    State = TypeVar("State")

_INFINITE = float("inf")
_NO_ANSWERS: dict[str, Any] = {}
"""Of every call that asks nothing, and never changed: making one for each call is noticed in its time."""
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
    """Ends the request of a call that goes on as a task. Not a failure: it carries the answer."""

    def __init__(self, described: dict[str, Any]) -> None:
        super().__init__()
        self.described = described


def find_input_requests(error: BaseException) -> dict[str, InputRequest]:
    """Return what a handler was unwound to ask, in one task or in several; nothing where it failed."""
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
        """What the bridge that serves it holds open."""
        self.dialect = dialect
        """How a failure of this request is worded."""
        self.arguments: msgspec.Raw = EMPTY
        """What a tool is called with, as it came."""
        self.attributes: dict[str, Any] | None = None
        """What the bridge says of this call, for whoever traces it; see `annotate`."""
        self._meta = meta
        self._last_progress = -_INFINITE
        self._answers = _NO_ANSWERS
        self._used = _NO_ANSWERS

    @property
    def state(self) -> State:
        """What the bridge's lifespan holds open."""
        value: State = self.lifespan.value
        return value

    def switch_bridge(self, lifespan: Lifespan, dialect: Dialect) -> None:
        """Go on as a request to another bridge, whose part serves it."""
        self.lifespan = lifespan
        self.dialect = dialect

    @property
    def principal(self) -> str | None:
        """Who makes the call, where the transport knows."""
        return self.connection.principal

    @property
    def progress_token(self) -> jsonrpc.RequestId | None:
        """The token under which the client wants to hear of progress."""
        meta = self._meta
        return None if meta is None or meta.progress_token is UNSET else meta.progress_token

    @property
    def wants_progress(self) -> bool:
        """Whether anybody hears of progress: the client asked to, or the call may become a task."""
        return self.run is not None or self.progress_token is not None

    @property
    def idempotency_key(self) -> str | None:
        """What a client that sends a request again gives it, so that a handler can do it once."""
        meta = self._meta
        return None if meta is None or meta.idempotency_key is UNSET else meta.idempotency_key

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context that came with the request: in its `_meta`, or else in HTTP headers."""
        meta = self._meta
        if meta is None or meta.traceparent is UNSET:
            from_transport: dict[str, str] = getattr(self.outlet, "trace", {})
            return from_transport
        found = {"traceparent": meta.traceparent, "tracestate": meta.tracestate, "baggage": meta.baggage}
        return {name: value for name, value in found.items() if isinstance(value, str)}

    def annotate(self, attributes: Mapping[str, Any]) -> None:
        """Say more of this call to whoever traces it, under the names of OpenTelemetry's conventions."""
        self.attributes = {**(self.attributes or {}), **attributes}

    @property
    def is_open(self) -> bool:
        """Whether the request still waits for its answer: nothing is said about one that does not."""
        return not self.cancelled and self.connection.in_flight.get(self.request_id) is self

    def cancel(self) -> None:
        """Stop the work; no answer is sent."""
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()

    def is_interrupted(self, error: BaseException) -> bool:
        """Tell whether an error ends the task from outside, and is not just what a handler let out."""
        if isinstance(error, asyncio.CancelledError):
            return self.task is None or self.task.cancelling() > 0
        return isinstance(error, GeneratorExit)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the work is, if it asked to hear. Values that do not grow are dropped.

        In a task, what is told is the status message.
        """
        if self.run is not None and self.run.is_detached:
            self.run.tell(progress, total, message)
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
        """Send the client a log message, if it is at or above the level that the client set."""
        wanted = self.client.log_level
        if wanted is None or LOG_LEVELS[level] < LOG_LEVELS[wanted]:
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
        """Let go of the HTTP response stream; a client that can resume comes back for the rest."""
        if self.is_open:
            await self.outlet.close_stream()

    async def elicit(
        self, message: str, form: type[Struct] | dict[str, Any], *, key: str = "elicitation"
    ) -> Elicited:
        """Ask the user to fill in a form."""
        from .input_requests import elicitation

        answer: Elicited = (await self.ask({key: elicitation(message, form)}))[key]
        return answer

    async def sample(
        self, messages: Sequence[SamplingMessage], *, max_tokens: int, key: str = "sampling", **options: Any
    ) -> Sampled:
        """Ask the client's model for a completion."""
        from .input_requests import sampling

        answer: Sampled = (await self.ask({key: sampling(messages, max_tokens=max_tokens, **options)}))[key]
        return answer

    async def roots(self, *, key: str = "roots") -> list[Root]:
        """Ask which folders and files the client has opened."""
        from .input_requests import list_roots

        answer: list[Root] = (await self.ask({key: list_roots()}))[key]
        return answer

    def can_ask(self, request: InputRequest) -> bool:
        """Tell whether this client can be asked this kind of request."""
        return request.is_defined_in(self.revision) and request.is_possible_for(self.client.capabilities)

    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Ask several questions at once; returns the answers by the same keys.

        In the stateless era the handler is run again from its start when the answers have come, so ask
        before you act; in a task it waits. Keys identify questions across those runs: use each only once in
        a handler.
        """
        for request in requests.values():
            if not self.can_ask(request):
                raise self._incapable(".".join(request.capability), request.required_capabilities)
        if self.run is not None and self.run.is_detached:
            return await self.run.ask(requests)
        if self.revision.stateless:
            return self._take_answers(requests)
        if not self.is_open:
            raise ToolError("The request is over; there is nobody to ask any more.")
        if not requests:
            return {}
        asked = [asyncio.ensure_future(self._ask_now(request)) for request in requests.values()]
        try:
            return dict(zip(requests, await asyncio.gather(*asked), strict=True))
        finally:
            for answer in asked:  # where one failed, the others are withdrawn
                answer.cancel()
            await asyncio.wait(asked)

    def require_extension(self, identifier: str) -> dict[str, Any]:
        """Return the settings that the client declared for an extension; refuse a client that did not."""
        settings = self.client.extensions.get(identifier)
        if settings is None:
            raise self.miss_extension(identifier)
        return settings

    def miss_extension(self, identifier: str) -> ProtocolError | ToolError:
        """Give the refusal of a client that has not declared an extension."""
        return self._incapable(f"extensions.{identifier}", {"extensions": {identifier: {}}})

    def _incapable(self, what: str, required: dict[str, Any]) -> ProtocolError | ToolError:
        failure = missing_capability(what, required)
        return failure if self.revision.stateless else ToolError(failure.message)

    async def _ask_now(self, request: InputRequest) -> Any:
        result = await self.connection.ask(self.outlet, request.method, request.params_in(self.revision))
        try:
            return request.read(result)
        except msgspec.ValidationError as error:
            from ..features.argument_errors import reword  # which only an answer that does not fit needs

            problem = reword(str(error), "the answer")
            message = f"The client's answer to {request.method} does not fit what was asked: {problem}"
            raise ToolError(message) from error

    async def detach(self) -> bool:
        """Go on as a task from here, if the tool is declared to and the client can take one.

        What is asked before is answered with the call made again, and the handler runs from its start; what
        is asked after is asked by the task, and the handler waits. Returns whether this is a task now.
        """
        return False if self.run is None else await self.run.detach()

    def supply_answers(self, answers: dict[str, Any]) -> None:
        """Take in the answers that came back with a retried request."""
        self._answers = answers

    @property
    def used_answers(self) -> dict[str, Any]:
        """The answers that the handler has asked for so far, as the client gave them."""
        return self._used

    def _take_answers(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        missing = {key: request for key, request in requests.items() if key not in self._answers}
        read = {key: self._read(key, request) for key, request in requests.items() if key not in missing}
        if missing:
            raise InputRequired(missing)
        return read

    def _read(self, key: str, request: InputRequest) -> Any:
        try:
            value = request.read(self._answers[key])
        except msgspec.ValidationError as error:
            from ..features.argument_errors import reword  # which only an answer that does not fit needs

            problem = reword(str(error), "the answer")
            message = f"inputResponses.{key} does not fit what was asked: {problem}"
            raise ProtocolError(INVALID_PARAMS, message) from error
        self._used = {**self._used, key: self._answers[key]}
        return value
