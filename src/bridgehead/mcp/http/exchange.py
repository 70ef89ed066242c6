"""Exchange: one HTTP request and its response, as ASGI gives them.

Owns the words of ASGI; the rest of the package speaks of headers, bodies, answers and events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .. import jsonrpc
from ..connection import overload
from ..errors import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    OVERLOADED,
    UNSUPPORTED_VERSION,
    MalformedRequest,
    ProtocolError,
)
from ..limits import Limits

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HeaderPairs = Sequence[tuple[bytes, bytes]]

NO_CONTENT = 204
_MOST_DIGITS = 20
JSON = (b"content-type", b"application/json")
EVENTS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)

_STATUS = {
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    OVERLOADED: 503,
}


class Whole(NamedTuple):
    """A response that is there in one piece."""

    status: int
    body: bytes = b""
    headers: HeaderPairs = ()

    @classmethod
    def json(cls, body: bytes, status: int = 200, headers: HeaderPairs = ()) -> Whole:
        """Make the response that carries one JSON-RPC message."""
        return cls(status, body, (JSON, *headers))

    def header_pairs(self) -> HeaderPairs:
        """Return its headers with the length of its body."""
        if self.status == NO_CONTENT:
            return self.headers
        return ((b"content-length", b"%d" % len(self.body)), *self.headers)


Outcome = Whole | Coroutine[Any, Any, Whole | None]
"""A response, or the work towards one; None is a response that was sent meanwhile, piece by piece."""


class Refused(Exception):
    """An HTTP request that is turned away: the status, and what to tell the client."""

    def __init__(
        self, status: int, message: str, *, code: int = INVALID_REQUEST, headers: HeaderPairs = ()
    ) -> None:
        super().__init__(message)
        self.error = ProtocolError(code, message)
        self.response = Whole.json(jsonrpc.error(None, self.error), status, headers)
        """How the request is turned away, in JSON-RPC words."""


class Exchange:
    """One request and its response."""

    __slots__ = (
        "_deadline",
        "_is_late",
        "_is_long",
        "_reader",
        "_receive",
        "_send",
        "_when_long",
        "headers",
        "prefers_events",
        "principal",
        "scope",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        if len(self.headers) != len(scope["headers"]):
            self.headers = _joined(scope["headers"])
        self.principal: str | None = scope["state"].get("principal") if "state" in scope else None
        self.prefers_events = False
        """Whether the client would rather have an event stream than plain JSON."""
        self._receive = receive
        self._send = send
        self._when_long: Callable[[], None] | None = None
        self._is_long = False
        self._is_late = False
        self._reader: tuple[asyncio.Task[Any] | None, float] | None = None
        """The task that reads the body, and how long that may take."""
        self._deadline: asyncio.TimerHandle | None = None

    def took_long(self) -> None:
        """Hear from the watch that this is not a quick one."""
        self._is_long = True
        if self._reader is not None:
            task, seconds = self._reader
            self._deadline = asyncio.get_running_loop().call_later(seconds, self._give_up, task)
        elif self._when_long is not None:
            self._when_long()

    def when_long(self, act: Callable[[], None]) -> None:
        """Do something if and when the work on the answer has taken long."""
        self._when_long = act
        if self._is_long:
            act()

    def check_length(self, limits: Limits) -> None:
        """Refuse a body that says beforehand that it is too large."""
        declared = self.headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared[:_MOST_DIGITS]) > limits.message_bytes:
            raise _too_large(limits)

    async def body(self, limits: Limits) -> bytes:
        """Read the whole body, up to a size and within a time."""
        self.check_length(limits)
        self._reader = (asyncio.current_task(), limits.body_seconds)
        try:
            event = await self._receive()
            if event["type"] == "http.request" and not event.get("more_body"):
                body: bytes = event.get("body", b"")
                return within(limits, body)
            return await self._long_body(event, limits)
        except asyncio.CancelledError:
            if not self._is_late:
                raise
            raise Refused(408, f"The body did not arrive within {limits.body_seconds:g} s") from None
        finally:
            self._reader = None
            if self._deadline is not None:
                self._deadline.cancel()

    def _give_up(self, task: asyncio.Task[Any] | None) -> None:
        self._is_late = True
        if task is not None:
            task.cancel()
            task.uncancel()

    async def _long_body(self, event: MutableMapping[str, Any], limits: Limits) -> bytes:
        """Read a body that comes in several pieces, of which the first is there."""
        body = bytearray()
        while event["type"] == "http.request":
            body += event.get("body", b"")
            within(limits, body)
            if not event.get("more_body"):
                return bytes(body)
            event = await self._receive()
        raise Gone

    async def gone(self) -> None:
        """Wait until the client has hung up."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def respond(self, response: Whole) -> None:
        """Send a whole response."""
        headers = response.header_pairs()
        await self._send({"type": "http.response.start", "status": response.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": response.body})

    async def open_events(self, headers: HeaderPairs = ()) -> None:
        """Begin an event stream."""
        await self._send({"type": "http.response.start", "status": 200, "headers": (*EVENTS, *headers)})

    async def event(self, data: bytes) -> None:
        """Send a piece of an event stream, waiting while the client is slow."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def close_events(self) -> None:
        """End an event stream."""
        await self._send({"type": "http.response.body", "body": b""})


def _joined(pairs: HeaderPairs) -> dict[bytes, bytes]:
    """Read a header that comes several times as one list, which is what HTTP takes it for."""
    headers: dict[bytes, bytes] = {}
    for name, value in pairs:
        headers[name] = headers[name] + b", " + value if name in headers else value
    return headers


class Gone(Exception):
    """The client hung up before it had said everything."""


def status_of(failure: ProtocolError, *, stateless: bool) -> int:
    """Return the HTTP status that goes with a JSON-RPC error."""
    if isinstance(failure, MalformedRequest):
        return 400
    if failure.code == OVERLOADED or stateless:
        return _STATUS.get(failure.code, 200)
    return 200


_Bytes = TypeVar("_Bytes", bytes, bytearray)


def within(limits: Limits, body: _Bytes) -> _Bytes:
    """Return a body that is not too large."""
    if len(body) > limits.message_bytes:
        raise _too_large(limits)
    return body


def busy() -> Refused:
    """Turn a request away because there are too many."""
    failure = overload()
    return Refused(503, failure.message, code=failure.code, headers=((b"retry-after", b"1"),))


def _too_large(limits: Limits) -> Refused:
    return Refused(413, f"A message may have {limits.message_bytes} bytes")
