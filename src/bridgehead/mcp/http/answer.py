"""Answer: how the answer to one POST travels. As JSON, or as events where there is more than the answer.

The first message that is not the answer turns the response into an event stream; a client that names events
first among what it accepts always gets one. In the stateless era a client that hangs up cancels its request.
In the handshake era a stream that has begun can be resumed, so its work goes on for a while, waiting for the
client to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..connection import Connection
from .callers import caller_of
from .events import HEADERS, KEEP_ALIVE, EventStream, event, priming
from .guard import accepted
from .message import Handled, HeaderPairs, Request, Response, ResponseStream

OK = 200


class Answer:
    """The answer to one POST; also the outlet for what its request says meanwhile."""

    __slots__ = (
        "_connection",
        "_headers",
        "_is_released",
        "_keep_alive",
        "_kept",
        "_limits",
        "_open_kept",
        "_request",
        "_response",
        "_retry_ms",
        "_return_limit",
    )

    def __init__(
        self,
        request: Request,
        connection: Connection,
        *,
        headers: HeaderPairs = (),
        open_kept: Callable[[], EventStream] | None = None,
        retry_ms: int = 1000,
    ) -> None:
        self._request = request
        self._connection = connection
        self._limits = connection.limits
        self._headers = headers
        self._open_kept = open_kept
        """How to keep the events for a client that may come back; None where it cannot."""
        self._retry_ms = retry_ms
        self._kept: EventStream | None = None
        self._response: ResponseStream | None = None
        self._is_released = False
        """Whether its events are no longer delivered here: the client has gone, or was told to come back."""
        self._keep_alive: asyncio.Task[None] | None = None
        self._return_limit: asyncio.Task[None] | None = None

    @property
    def caller(self) -> str:
        """The name that whoever asks is counted under."""
        return caller_of(self._request)

    @property
    def token_id(self) -> str:
        """What tells the token of whoever asks from an earlier one of the same name."""
        return self._request.token_id

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context in the request's headers."""
        headers = self._request.headers
        names = (b"traceparent", b"tracestate", b"baggage")
        return {name.decode(): headers[name].decode("latin-1") for name in names if name in headers}

    @property
    def session_id(self) -> str:
        """The session that the request belongs to, or that it opens; nothing where there is none."""
        own = dict(self._headers).get(b"mcp-session-id") if self._headers else None
        return (own or self._request.headers.get(b"mcp-session-id", b"")).decode("latin-1")

    # --- what the request says meanwhile -------------------------------------------------------------------

    async def send(self, message: bytes) -> None:
        """Send a message that is not the answer."""
        response = self._response or await self._begin()
        await self._deliver(response, event(message) if self._kept is None else self._kept.append(message))

    async def close_stream(self) -> None:
        """Let go of the connection; the client comes back for the rest."""
        if self._open_kept is None:
            return
        response = self._response or await self._begin()
        if not self._is_released:
            await self._release(response)

    async def _begin(self) -> ResponseStream:
        if self._open_kept is not None:
            self._kept = self._open_kept()
            self._kept.reader = self
        self._response = response = await self._request.open_stream(OK, (*HEADERS, *self._headers))
        client = self._connection.client
        if self._kept is not None and client is not None and client.revision.priming_events:
            await response.write(priming(self._kept.event_id(0), self._retry_ms))
        self._keep_alive = asyncio.get_running_loop().create_task(self._stay_alive(response))
        return response

    async def _deliver(self, response: ResponseStream, data: bytes) -> None:
        if self._is_released:
            return
        if self._kept is not None and self._kept.reader is not self:
            await self._release(response)  # the client has come back on another connection
        else:
            await response.write(data)

    async def _release(self, response: ResponseStream) -> None:
        self._await_return()
        if self._keep_alive is not None:
            self._keep_alive.cancel()
        await response.close()

    async def _stay_alive(self, response: ResponseStream) -> None:
        while True:
            await asyncio.sleep(self._limits.keep_alive_seconds)
            await self._deliver(response, KEEP_ALIVE)

    # --- the client --------------------------------------------------------------------------------------

    def watch_client(self) -> None:
        """Stop the work on the answer when its client is gone for good."""
        self._request.when_gone(self._client_gone)

    def _client_gone(self) -> None:
        if self._kept is None:
            self._connection.cancel_from(self)
        else:
            self._await_return()

    def _await_return(self) -> None:
        """Deliver nothing here any more, and stop the work unless the client comes back in time."""
        self._is_released = True
        if self._kept is not None and self._kept.reader is self:
            self._kept.reader = None
        if self._kept is not None and self._return_limit is None:
            self._return_limit = asyncio.get_running_loop().create_task(self._limit_absence(self._kept))

    async def _limit_absence(self, kept: EventStream) -> None:
        while True:  # as long as the client is back, it has all the time it wants
            await asyncio.sleep(self._limits.resume_seconds)
            if kept.reader is None:
                self._connection.cancel_from(self)
                return

    # --- the answer ----------------------------------------------------------------------------------------

    def finish(self, answer: bytes | None, status: int = OK) -> Handled:
        """Make the response of an answer; None is no answer, because the request was cancelled."""
        if self._response is not None or (
            status == OK and accepted(self._request.headers.get(b"accept")).prefers_events
        ):
            return self._finish_stream(answer)
        return Response(202) if answer is None else Response.json(answer, status, self._headers)

    async def _finish_stream(self, answer: bytes | None) -> ResponseStream:
        response = self._response or await self._begin()
        if answer is not None:
            data = event(answer) if self._kept is None else self._kept.append(answer)
            await self._deliver(response, data)
        if self._kept is not None:
            self._kept.end()
        return response

    def stop(self) -> None:
        """End what runs beside the answer; called when that is given, or will never be."""
        for task in (self._keep_alive, self._return_limit):
            if task is not None:
                task.cancel()
