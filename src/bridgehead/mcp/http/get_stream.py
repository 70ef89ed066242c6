"""GET stream: what a session is told beside its answers, and the resuming of a stream that broke off.

Only the handshake era has it. One connection at a time delivers a stream: whoever comes last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ..dispatch import Dispatcher
from .callers import Callers
from .events import HEADERS, KEEP_ALIVE, EventStream
from .message import Handled, Request, ResponseStream
from .sessions import Session


class GetStreams:
    """Delivers the streams of an endpoint's sessions."""

    def __init__(self, dispatcher: Dispatcher, callers: Callers) -> None:
        self._dispatcher = dispatcher
        self._callers = callers
        self._limits = dispatcher.limits

    def open(self, request: Request, session: Session) -> Handled:
        """Begin to deliver: the general stream, or the one whose last event the client names."""
        self._callers.streams.check(session.caller)
        last = request.headers.get(b"last-event-id")
        if last is None:
            return self._deliver(request, session, session.general, session.general.last)
        return self._deliver(request, session, *session.position(last.decode("latin-1")))

    async def _deliver(
        self, request: Request, session: Session, stream: EventStream, position: int
    ) -> ResponseStream:
        session.in_use += 1
        self._callers.streams.take(session.caller)
        try:
            with self._announcing(session, stream):
                return await self._follow(request, stream, position)
        finally:
            self._callers.streams.give_back(session.caller)
            session.release()

    async def _follow(self, request: Request, stream: EventStream, position: int) -> ResponseStream:
        """Deliver a stream from a position on, until it ends, its client hangs up, or another takes over."""
        stream.reader = reader = object()
        response = await request.open_stream(200, HEADERS)
        request.when_gone(stream.wake)
        while not request.is_gone and stream.reader is reader:
            for number, data in stream.after(position):
                await response.write(data)
                position = number
            if stream.has_ended:
                break
            if not await stream.more(self._limits.keep_alive_seconds):
                await response.write(KEEP_ALIVE)
        if stream.reader is reader:
            stream.reader = None
        return response

    @contextmanager
    def _announcing(self, session: Session, stream: EventStream) -> Iterator[None]:
        """While the general stream is being delivered, let the changes for its client flow into it."""
        listener = session.connection.listener
        if stream is not session.general or listener is None:
            yield
            return
        if session.announcer is not None:  # only one may listen, or the other would take its changes
            session.announcer.cancel()
        announcing = self._dispatcher.announce(listener, _Into(stream))
        session.announcer = announcer = asyncio.get_running_loop().create_task(announcing)
        try:
            yield
        finally:
            announcer.cancel()
            if session.announcer is announcer:
                session.announcer = None


class _Into:
    """An outlet that writes into an event stream."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    async def send(self, message: bytes) -> None:
        self._stream.append(message)

    async def close_stream(self) -> None:
        """There is nothing to let go of."""
