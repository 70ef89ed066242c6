"""Answer: how the answer to one POST travels, as JSON or as an event stream.

The first message that is not the answer turns the response into an event stream; so does an Accept that
prefers events. In the stateless era a client that hangs up cancels its request. In the handshake era a stream
can be resumed, so the work continues for `resume_seconds` in case the client reconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from ..calls.caller import Caller, without_credentials
from ..connection import Connection
from .events import HEADERS, KEEP_ALIVE, EventStream, event, priming
from .guard import accepted
from .message import AnyResponse, HeaderPairs, Request, Response, ResponseStream

OK = 200
_UNAVAILABLE = 503
_RETRY: HeaderPairs = ((b"retry-after", b"5"),)
"""Tells the client when to retry: a 503 means that a limit is reached for now."""


class PostAnswer:
    """The answer to one POST, and the outlet for other messages of its request."""

    __slots__ = (
        "_connection",
        "_headers",
        "_is_released",
        "_keep_alive",
        "_limits",
        "_open_resumable",
        "_request",
        "_response",
        "_resumable",
        "_retry_ms",
        "_return_limit",
    )

    def __init__(
        self,
        request: Request,
        connection: Connection,
        *,
        headers: HeaderPairs = (),
        open_resumable: Callable[[], EventStream] | None = None,
        retry_ms: int = 1000,
    ) -> None:
        self._request = request
        self._connection = connection
        self._limits = connection.limits
        self._headers = headers
        self._open_resumable = open_resumable
        """Opens the session's record of this stream; None in the stateless era, which cannot resume."""
        self._retry_ms = retry_ms
        self._resumable: EventStream | None = None
        self._response: ResponseStream | None = None
        self._is_released = False
        """Whether events no longer go to this response: the client hung up or reconnected elsewhere."""
        self._keep_alive: asyncio.Task[None] | None = None
        self._return_limit: asyncio.Task[None] | None = None

    @property
    def caller(self) -> str:
        """The name that the request is counted under."""
        return self._request.caller

    @property
    def token_id(self) -> str:
        """The id of the caller's token; differs between tokens of the same name."""
        return self._request.token_id

    def describe_caller(self) -> Caller:
        """Return who sent the request, without credentials."""
        request = self._request
        known = request.identity or Caller(request.principal)
        return replace(known, headers=without_credentials(request.headers))

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context in the request's headers."""
        headers = self._request.headers
        names = (b"traceparent", b"tracestate", b"baggage")
        return {name.decode(): headers[name].decode("latin-1") for name in names if name in headers}

    @property
    def session_id(self) -> str:
        """The session that the request belongs to or opens; empty without one."""
        opened = dict(self._headers).get(b"mcp-session-id") if self._headers else None
        return (opened or self._request.headers.get(b"mcp-session-id", b"")).decode("latin-1")

    # --- messages before the answer ------------------------------------------------------------------------

    async def send(self, message: bytes) -> None:
        """Send a message that is not the answer."""
        response = self._response or await self._begin()
        await self._deliver(response, self._encode(message))

    async def close_stream(self) -> None:
        """End the response early (SEP-1699); the client reconnects for the rest."""
        if self._open_resumable is None:
            return
        response = self._response or await self._begin()
        if not self._is_released:
            await self._release(response)

    async def _begin(self) -> ResponseStream:
        if self._open_resumable is not None:
            self._resumable = self._open_resumable()
            self._resumable.reader = self
        self._response = response = await self._request.open_stream(OK, (*HEADERS, *self._headers))
        client = self._connection.client
        if self._resumable is not None and client is not None and client.revision.priming_events:
            await response.write(priming(self._resumable.event_id(0), self._retry_ms))
        self._keep_alive = asyncio.get_running_loop().create_task(self._send_keep_alives(response))
        return response

    def _encode(self, message: bytes) -> bytes:
        return event(message) if self._resumable is None else self._resumable.append(message)

    async def _deliver(self, response: ResponseStream, data: bytes) -> None:
        if self._is_released:
            return
        if self._resumable is not None and self._resumable.reader is not self:
            await self._release(response)  # the client has resumed the stream with a GET
        else:
            await response.write(data)

    async def _release(self, response: ResponseStream) -> None:
        self._await_return()
        if self._keep_alive is not None:
            self._keep_alive.cancel()
        await response.close()

    async def _send_keep_alives(self, response: ResponseStream) -> None:
        while True:
            await asyncio.sleep(self._limits.keep_alive_seconds)
            await self._deliver(response, KEEP_ALIVE)

    # --- the client --------------------------------------------------------------------------------------

    def on_client_gone(self) -> None:
        """Cancel the work, unless the client can come back and does."""
        if self._resumable is None:
            self._connection.cancel_from(self)
        else:
            self._await_return()

    def _await_return(self) -> None:
        """Stop delivering here; cancel the work unless the client resumes the stream in time."""
        self._is_released = True
        if self._resumable is not None and self._resumable.reader is self:
            self._resumable.reader = None
        if self._resumable is not None and self._return_limit is None:
            limiting = self._cancel_if_absent(self._resumable)
            self._return_limit = asyncio.get_running_loop().create_task(limiting)

    async def _cancel_if_absent(self, stream: EventStream) -> None:
        while True:  # no limit while the stream has a reader
            await asyncio.sleep(self._limits.resume_seconds)
            if stream.reader is None:
                self._connection.cancel_from(self)
                return

    # --- the answer ----------------------------------------------------------------------------------------

    async def finish(self, answer: bytes | None, status: int = OK) -> AnyResponse:
        """Make the response; without an answer (None) the request was cancelled."""
        if self._response is None and not (
            status == OK and accepted(self._request.headers.get(b"accept")).prefers_events
        ):
            if answer is None:
                return Response(202)
            headers = (*self._headers, *_RETRY) if status == _UNAVAILABLE else self._headers
            return Response.json(answer, status, headers)
        response = self._response or await self._begin()
        if answer is not None:
            await self._deliver(response, self._encode(answer))
        if self._resumable is not None:
            self._resumable.end()
        return response

    def stop(self) -> None:
        """Cancel the helper tasks, once the answer is sent or given up."""
        # Otherwise the kept stream and this answer would keep each other alive.
        if self._resumable is not None and self._resumable.reader is self:
            self._resumable.reader = None
        for task in (self._keep_alive, self._return_limit):
            if task is not None:
                task.cancel()
        self._keep_alive = self._return_limit = None  # a cancelled task keeps its frame, and so this answer
