"""Endpoint: Streamable HTTP at one URL, for the clients of both eras at once.

What is posted goes to `posting.py`. GET and DELETE exist only in the handshake era: the stream of what
belongs to no request, the resuming of a broken one, the end of a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from ..dispatch import Dispatcher
from .events import KEEP_ALIVE, EventStream
from .exchange import NO_CONTENT, Exchange, Outcome, Refused, Whole, within
from .guard import Guard, accepted
from .posting import STATELESS_NAMES, Posting, check_version
from .sessions import Session, Sessions


class Endpoint:
    """Serves one dispatcher at one URL."""

    def __init__(self, dispatcher: Dispatcher, guard: Guard, *, retry_ms: int = 1000) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._guard = guard
        self.sessions = Sessions(self._limits, lambda session: dispatcher.disconnect(session.connection))
        self._posting = Posting(dispatcher, self.sessions, retry_ms)

    async def serve(self, exchange: Exchange) -> Whole | None:
        """Serve one HTTP request."""
        method = exchange.scope["method"]
        self._guard.check(exchange.headers)
        if method == "POST":
            return await self._post(exchange)
        if method == "GET":
            await self._get(exchange)
            return None
        if method == "DELETE":
            return self._delete(exchange)
        raise _not_allowed(f"{method} is not used here", b"GET, POST, DELETE")

    def at_once(self, exchange: Exchange, body: bytes) -> Outcome:
        """Serve a POST whose body is there, without waiting where there is nothing to wait for."""
        self._guard.check(exchange.headers)
        self._posting.admit(exchange)
        return self._posting.take(exchange, within(self._limits, body))

    async def _post(self, exchange: Exchange) -> Whole | None:
        self._posting.admit(exchange)
        outcome = self._posting.take(exchange, await self._posting.body(exchange))
        return outcome if isinstance(outcome, Whole) else await outcome

    def end_streams(self) -> None:
        """End the streams that would never end by themselves, because the server is going."""
        self._dispatcher.end_streams()
        self.sessions.end_general_streams()

    def close(self) -> None:
        """End every session and everything done for it."""
        self.sessions.close_all()

    # --- GET -----------------------------------------------------------------------------------------------

    async def _get(self, exchange: Exchange) -> None:
        if exchange.headers.get(b"mcp-protocol-version") in STATELESS_NAMES:
            raise _not_allowed("There is no GET stream in this revision; use subscriptions/listen", b"POST")
        if not accepted(exchange.headers.get(b"accept")).events:
            raise Refused(406, "Accept must list text/event-stream")
        check_version(exchange)
        session = self.sessions.of(exchange)
        last = exchange.headers.get(b"last-event-id")
        stream, position = (
            (session.general, None) if last is None else session.position(last.decode("latin-1"))
        )
        delivery = self._follow(exchange, session, stream, stream.last if position is None else position)
        await self.sessions.during(session, delivery)

    async def _follow(self, exchange: Exchange, session: Session, stream: EventStream, position: int) -> None:
        """Deliver a stream from a position on, until it ends, its client hangs up, or another takes over."""
        stream.reader = reader = object()
        async with self._while_connected(exchange) as connected, self._announcing(session, stream):
            await exchange.open_events()
            while connected() and stream.reader is reader:
                for number, data in stream.after(position):
                    await exchange.event(data)
                    position = number
                if stream.has_ended:
                    break
                if not await stream.more(self._limits.keep_alive_seconds):
                    await exchange.event(KEEP_ALIVE)
            await exchange.close_events()
        if stream.reader is reader:
            stream.reader = None

    @asynccontextmanager
    async def _while_connected(self, exchange: Exchange) -> AsyncIterator[Any]:
        """Cancel what is inside when the client hangs up, and go on after it."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        hung_up = False

        async def watch() -> None:
            nonlocal hung_up
            await exchange.gone()
            hung_up = True
            task.cancel()

        watcher = asyncio.get_running_loop().create_task(watch())
        try:
            yield lambda: not hung_up
        except asyncio.CancelledError:
            if not hung_up:
                raise
            task.uncancel()
        finally:
            watcher.cancel()

    @asynccontextmanager
    async def _announcing(self, session: Session, stream: EventStream) -> AsyncIterator[None]:
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

    # --- DELETE --------------------------------------------------------------------------------------------

    def _delete(self, exchange: Exchange) -> Whole:
        if exchange.headers.get(b"mcp-protocol-version") in STATELESS_NAMES:
            raise _not_allowed("There are no sessions in this revision", b"POST")
        self.sessions.close(self.sessions.of(exchange))
        return Whole(NO_CONTENT)


def _not_allowed(message: str, allowed: bytes) -> Refused:
    return Refused(405, message, headers=((b"allow", allowed),))


class _Into:
    """An outlet that writes into an event stream."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    async def send(self, message: bytes) -> None:
        self._stream.append(message)

    async def close_stream(self) -> None:
        """Nothing to let go of."""
