"""Connection: one client's channel, its requests in flight and our requests to it.

A stdio process has one for its whole life, an HTTP session of the handshake era has one, and a stateless HTTP
request has one of its own. No I/O here: messages go to an `Outlet` that the transport supplies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct

from . import jsonrpc
from .changes import Listener
from .errors import OVERLOADED, ProtocolError, ToolError
from .limits import Limits
from .revisions import Revision

Reply = bytes | Coroutine[Any, Any, bytes | None] | None
"""An answer, a coroutine for one (None if it is cancelled), or None for no answer."""


class Outlet(Protocol):
    """Sends the messages of a request other than its answer: notifications, and requests of ours."""

    async def send(self, message: bytes) -> None:
        """Send a message, waiting while the client is slow to read."""

    async def close_stream(self) -> None:
        """End the response stream, if any; the client resumes for the rest."""


class InFlight(Protocol):
    """A request being served, such as a `Context`. A Protocol, because that module imports this one."""

    request_id: jsonrpc.RequestId
    outlet: Outlet

    def cancel(self) -> None:
        """Stop the work; no answer is sent."""


class Client(Struct):
    """The client as it describes itself."""

    revision: Revision
    capabilities: dict[str, Any]
    info: dict[str, Any]
    log_level: str | None = "info"
    names_revision: bool = True
    """False after `initialize {}`: then a bridge with a contract shows exactly its contract."""

    @property
    def extensions(self) -> dict[str, dict[str, Any]]:
        """The extensions that it declared, by name, with their settings.

        In the stateless era they are declared with each request and hold for that request alone.
        """
        declared = self.capabilities.get("extensions")
        if not isinstance(declared, dict):
            return {}
        return {name: settings for name, settings in declared.items() if isinstance(settings, dict)}


class Connection:
    """The state of one client's channel."""

    __slots__ = (
        "__weakref__",
        "_last_asked",
        "asked",
        "caller",
        "client",
        "in_flight",
        "limits",
        "listener",
        "listeners",
        "parked",
        "principal",
        "waiting",
    )

    def __init__(self, limits: Limits, principal: str | None = None, caller: str = "") -> None:
        self.limits = limits
        self.principal = principal
        self.caller = caller
        """The account that is charged for memory held for this client."""
        self.client: Client | None = None
        self.in_flight: dict[jsonrpc.RequestId, InFlight] = {}
        """Requests being served; the dispatcher adds and removes them."""
        self.parked = 0
        """Requests in flight that only wait for the client's answer or for changes; not counted as busy."""
        self.waiting: deque[jsonrpc.Message | jsonrpc.Batch] = deque()
        """Requests that arrived while the connection was busy."""
        self.asked: dict[jsonrpc.RequestId, asyncio.Future[Any]] = {}
        self.listener: Listener | None = None
        """The listener of a handshake-era client; made by its `initialize`."""
        self.listeners: list[Listener] = []
        """`listener`, and those of open listen streams."""
        self._last_asked = 0

    @property
    def is_busy(self) -> bool:
        """Whether the limit of requests in flight is reached."""
        return len(self.in_flight) - self.parked >= self.limits.requests_in_flight

    def take_changes(self) -> list[bytes]:
        """Return pending changes. Send them before the next answer: its request may have caused them."""
        return [message for listener in self.listeners if listener.waiting for message in listener.take()]

    def cancel(self, request_id: jsonrpc.RequestId) -> None:
        """Cancel a request that is in flight or waiting; others are ignored, as the protocol asks."""
        request = self.in_flight.get(request_id)
        if request is not None:
            request.cancel()
            return
        for message in self.waiting:  # a linear search: at most `requests_in_flight` messages
            if isinstance(message, jsonrpc.Message) and message.id == request_id:
                self.waiting.remove(message)
                return

    @contextmanager
    def park(self) -> Iterator[None]:
        """Do not count a request as busy while it waits for the client."""
        self.parked += 1
        try:
            yield
        finally:
            self.parked -= 1

    def cancel_from(self, outlet: Outlet) -> None:
        """Cancel the requests that belong to an outlet whose client is gone."""
        for request in tuple(self.in_flight.values()):
            if request.outlet is outlet:
                request.cancel()

    def cancel_all(self) -> None:
        """Cancel every request in flight."""
        for request in tuple(self.in_flight.values()):
            request.cancel()

    async def ask(self, outlet: Outlet, method: str, params: Any) -> Any:
        """Send the client a request of ours; wait at most `ask_seconds` for its answer."""
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
        """Set the result of the question that this message answers; other answers are ignored."""
        waiting = self.asked.get(message.id) if message.id else None
        if waiting is None or waiting.done():
            return
        try:
            if message.error:
                refusal = jsonrpc.decode_as(message.error, _ErrorAnswer)
                waiting.set_exception(ToolError(f"The client refused: {refusal.message} ({refusal.code})"))
            else:
                waiting.set_result(jsonrpc.decode_value(message.result))
        except jsonrpc.UNDECODABLE as error:
            unreadable = ToolError("The client's answer could not be read.")
            unreadable.__cause__ = error
            waiting.set_exception(unreadable)

    def abandon_asked(self) -> None:
        """Fail every request of ours: the client can no longer answer."""
        for waiting in tuple(self.asked.values()):
            if not waiting.done():
                waiting.set_exception(ToolError("The client left before it answered."))


class _ErrorAnswer(Struct):
    code: int
    message: str


class NullOutlet:
    """The outlet of a request that can send nothing but its answer."""

    async def send(self, message: bytes) -> None:
        """Drop the message."""

    async def close_stream(self) -> None:
        """Do nothing: there is no stream."""


def _withdrawn(asked_id: str) -> bytes:
    return jsonrpc.notification("notifications/cancelled", {"requestId": asked_id})


def overload() -> ProtocolError:
    """Make the error for a request above the limit."""
    return ProtocolError(OVERLOADED, "Too many requests are in flight. Wait for answers, then try again.")
