"""Response: how the answer to one POST travels. As JSON, or as events where there is more than the answer.

The first message that is not the answer turns the response into an event stream; a client that names events
first among what it accepts always gets one. In the stateless era a client that hangs up cancels its request.
In the handshake era a stream that has begun can be resumed, so its work goes on for a while, waiting for the
client to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from ..connection import Connection
from .events import KEEP_ALIVE, EventStream, event, priming
from .exchange import Exchange, HeaderPairs, Outcome, Whole

OK = 200


class Response:
    """The response to one POST; also the outlet for what its request says meanwhile."""

    __slots__ = (
        "_connection",
        "_headers",
        "_is_delivered_elsewhere",
        "_is_streaming",
        "_keep_alive",
        "_limits",
        "_open_stream",
        "_retry_ms",
        "_stream",
        "_watcher",
        "exchange",
    )

    def __init__(
        self,
        exchange: Exchange,
        connection: Connection,
        *,
        headers: HeaderPairs = (),
        open_stream: Callable[[], EventStream] | None = None,
        retry_ms: int = 1000,
    ) -> None:
        self.exchange = exchange
        self._connection = connection
        self._limits = connection.limits
        self._headers = headers
        self._open_stream = open_stream
        """How to keep the events for a client that may come back; None where it cannot."""
        self._retry_ms = retry_ms
        self._stream: EventStream | None = None
        self._is_streaming = False
        self._is_delivered_elsewhere = False
        self._keep_alive: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None

    # --- what the request says meanwhile -------------------------------------------------------------------

    async def send(self, message: bytes) -> None:
        """Send a message that is not the answer."""
        if not self._is_streaming:
            await self._begin()
        await self._deliver(self._encoded(message))

    async def close_stream(self) -> None:
        """Let go of the connection; the client comes back for the rest."""
        if self._open_stream is None:
            return
        if not self._is_streaming:
            await self._begin()
        if not self._is_delivered_elsewhere:
            await self._let_go()

    async def _begin(self) -> None:
        self._is_streaming = True
        if self._open_stream is not None:
            self._stream = self._open_stream()
            self._stream.reader = self
        await self.exchange.open_events(self._headers)
        client = self._connection.client
        if self._stream is not None and client is not None and client.revision.priming_events:
            await self.exchange.event(priming(self._stream.event_id(0), self._retry_ms))
        self._keep_alive = asyncio.get_running_loop().create_task(self._stay_alive())

    def _encoded(self, message: bytes) -> bytes:
        return event(message) if self._stream is None else self._stream.append(message)

    async def _deliver(self, data: bytes) -> None:
        if self._is_delivered_elsewhere:
            return
        if self._stream is not None and self._stream.reader is not self:
            await self._let_go()  # the client has come back on another connection
        else:
            await self.exchange.event(data)

    async def _let_go(self) -> None:
        self._is_delivered_elsewhere = True
        if self._stream is not None and self._stream.reader is self:
            self._stream.reader = None
        if self._keep_alive is not None:
            self._keep_alive.cancel()
        await self.exchange.close_events()

    async def _stay_alive(self) -> None:
        while True:
            await asyncio.sleep(self._limits.keep_alive_seconds)
            await self._deliver(KEEP_ALIVE)

    # --- the answer ----------------------------------------------------------------------------------------

    async def run(self, work: Coroutine[Any, Any, bytes | None]) -> bytes | None:
        """Do the work, and stop it when its client is gone for good."""
        self.exchange.when_long(self._begin_watching)
        try:
            return await work
        finally:
            if self._watcher is not None:
                self._watcher.cancel()

    def _begin_watching(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        await self.exchange.gone()
        if self._stream is not None:
            self._is_delivered_elsewhere = True
            if self._stream.reader is self:
                self._stream.reader = None
            await self._wait_for_return(self._stream)
        self._connection.cancel_from(self)

    async def _wait_for_return(self, stream: EventStream) -> None:
        """Give the client time to come back, and as long as it is back, all the time it wants."""
        while True:
            await asyncio.sleep(self._limits.resume_seconds)
            if stream.reader is None:
                return

    def finish(self, answer: bytes | None, status: int = OK) -> Outcome:
        """Make the response of an answer; None is no answer, because the request was cancelled."""
        if self._is_streaming or (status == OK and self.exchange.prefers_events):
            return self._finish_stream(answer)
        return Whole(202) if answer is None else Whole.json(answer, status, self._headers)

    async def _finish_stream(self, answer: bytes | None) -> None:
        if not self._is_streaming:
            await self._begin()
        if self._keep_alive is not None:
            self._keep_alive.cancel()
        if answer is not None:
            await self._deliver(self._encoded(answer))
        if self._stream is not None:
            self._stream.end()
        if not self._is_delivered_elsewhere:
            with suppress(Exception):
                await self.exchange.close_events()
