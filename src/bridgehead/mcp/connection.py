"""Connection: one client's channel, its requests in flight and our requests to it.

A stdio process has one for its whole life, an HTTP session of the handshake era has one, and a stateless HTTP
request has one of its own. No I/O here: what is to be sent goes to an `Outlet` that the transport supplies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from . import jsonrpc
from .errors import INVALID_REQUEST, OVERLOADED, ProtocolError, ToolError
from .lazy_imports import asyncio
from .revisions import Revision

if TYPE_CHECKING:
    from .changes import Listener
    from .limits import Limits

Reply = bytes | Coroutine[Any, Any, bytes | None] | None
"""An answer, work that will give one (or none, if it is cancelled), or nothing to say."""


class Outlet(Protocol):
    """Where a transport takes messages that are not the answer itself: notifications, our requests."""

    async def send(self, message: bytes) -> None:
        """Send a message, waiting while the client is slow to read."""

    async def close_stream(self) -> None:
        """Let go of the response stream where there is one; the client comes back for the rest."""


class InFlight(Protocol):
    """A request being served, as its connection knows it. A call's `Context` is one."""

    request_id: jsonrpc.RequestId
    outlet: Outlet

    def cancel(self) -> None:
        """Stop the work; no answer is sent."""


class Client(Struct):
    """Who is at the other end, as it says itself, and what it can do."""

    revision: Revision
    capabilities: dict[str, Any]
    info: dict[str, Any]
    log_level: str | None = "info"

    @property
    def extensions(self) -> dict[str, dict[str, Any]]:
        """The extensions of the protocol that it declared, by name, with their settings.

        A client of the stateless era declares them with each request, and only that request may use them.
        """
        declared = self.capabilities.get("extensions")
        if not isinstance(declared, dict):
            return {}
        return {name: settings for name, settings in declared.items() if isinstance(settings, dict)}


class Connection:
    """The state of one client's channel."""

    __slots__ = (
        "_last_asked",
        "asked",
        "client",
        "in_flight",
        "limits",
        "listener",
        "listeners",
        "parked",
        "principal",
        "waiting",
    )

    def __init__(self, limits: Limits, principal: str | None = None) -> None:
        self.limits = limits
        self.principal = principal
        self.client: Client | None = None
        self.in_flight: dict[jsonrpc.RequestId, InFlight] = {}
        self.parked = 0
        """Requests in flight that do no work: they wait for the client's answer, or listen for changes."""
        self.waiting: deque[jsonrpc.Message | jsonrpc.Batch] = deque()
        """Requests that came in while there was no room for them."""
        self.asked: dict[jsonrpc.RequestId, asyncio.Future[Any]] = {}
        self.listener: Listener | None = None
        """What a client of the handshake era hears of; made by its `initialize`."""
        self.listeners: list[Listener] = []
        """All that this client hears of: the one above, and its open listen streams."""
        self._last_asked = 0

    @property
    def is_busy(self) -> bool:
        """Tell whether there is no room for another request."""
        return len(self.in_flight) - self.parked >= self.limits.requests_in_flight

    def take_changes(self) -> list[bytes]:
        """Take what the client is to hear of before the next answer, which may be the cause of it."""
        return [message for listener in self.listeners if listener.waiting for message in listener.take()]

    def enter(self, request: InFlight) -> None:
        """Take a request in. Its id must not be that of one still being served."""
        request_id = request.request_id
        if request_id in self.in_flight:
            raise ProtocolError(INVALID_REQUEST, f"Invalid request: id {request_id!r} is already in flight")
        self.in_flight[request_id] = request

    def leave(self, request: InFlight) -> None:
        """Forget a request that is answered."""
        self.in_flight.pop(request.request_id, None)

    def cancel(self, request_id: jsonrpc.RequestId) -> None:
        """Stop a request's work, or never begin it; one that is unknown or answered already is left alone."""
        request = self.in_flight.get(request_id)
        if request is not None:
            request.cancel()
            return
        for message in self.waiting:  # at most `requests_in_flight` of them
            if isinstance(message, jsonrpc.Message) and message.id == request_id:
                self.waiting.remove(message)
                return

    @contextmanager
    def park(self) -> Iterator[None]:
        """Count a request as one that does no work meanwhile: it waits for the client."""
        self.parked += 1
        try:
            yield
        finally:
            self.parked -= 1

    def cancel_from(self, outlet: Outlet) -> None:
        """Stop the requests that speak through an outlet whose client is gone."""
        for request in tuple(self.in_flight.values()):
            if request.outlet is outlet:
                request.cancel()

    def cancel_all(self) -> None:
        """Stop everything in flight."""
        for request in tuple(self.in_flight.values()):
            request.cancel()

    async def ask(self, outlet: Outlet, method: str, params: Any) -> Any:
        """Send the client a request of ours and wait, for a bounded time, for its answer."""
        if len(self.asked) >= self.limits.client_requests:
            raise ToolError("Too many questions are waiting for the client's answer. Answer those first.")
        self._last_asked += 1
        asked_id = f"bridgehead-{self._last_asked}"
        answer = asyncio.get_running_loop().create_future()
        self.asked[asked_id] = answer
        try:
            with self.park():
                await outlet.send(jsonrpc.request(asked_id, method, params))
                return await asyncio.wait_for(answer, self.limits.ask_seconds)
        except TimeoutError:
            await outlet.send(_withdrawn(asked_id))
            message = f"The client did not answer {method} within {self.limits.ask_seconds:g} s."
            raise ToolError(message) from None
        except asyncio.CancelledError:
            await outlet.send(_withdrawn(asked_id))
            raise
        finally:
            del self.asked[asked_id]

    def take_answer(self, message: jsonrpc.Message) -> None:
        """Hand a client's answer to whoever asked; an answer to nothing is ignored."""
        waiting = self.asked.get(message.id) if message.id else None
        if waiting is None or waiting.done():
            return
        try:
            waiting.set_result(_result_of(message))
        except ToolError as refusal:
            waiting.set_exception(refusal)

    def abandon_asked(self) -> None:
        """Give up on every request of ours: the client can no longer answer."""
        for waiting in tuple(self.asked.values()):
            if not waiting.done():
                waiting.set_exception(ToolError("The client left before it answered."))


class _Refusal(Struct):
    code: int
    message: str


def _result_of(message: jsonrpc.Message) -> Any:
    try:
        if message.error:
            refusal = jsonrpc.decode_as(message.error, _Refusal)
            raise ToolError(f"The client refused: {refusal.message} ({refusal.code})")
        return jsonrpc.decode_value(message.result)
    except jsonrpc.UNDECODABLE as error:
        raise ToolError("The client's answer could not be read.") from error


class NullOutlet:
    """An outlet for a message whose answer is all that there is to say."""

    async def send(self, message: bytes) -> None:
        """Nothing is ever sent."""

    async def close_stream(self) -> None:
        """There is no stream to let go of."""


def _withdrawn(asked_id: str) -> bytes:
    return jsonrpc.notification("notifications/cancelled", {"requestId": asked_id})


def overload() -> ProtocolError:
    """Refuse a request because there are too many."""
    return ProtocolError(OVERLOADED, "Too many requests are in flight. Wait for answers, then try again.")
