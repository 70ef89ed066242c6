"""Legacy: the HTTP+SSE transport of 2024-11-05, for clients that know nothing newer.

`GET /sse` opens the stream on which everything is answered; its first event names the URL to post to.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from typing import Any
from urllib.parse import parse_qs

from .. import jsonrpc
from ..connection import Connection
from ..dispatch import Dispatcher
from .events import KEEP_ALIVE, event
from .exchange import Exchange, Refused, Whole, busy
from .guard import Guard
from .watch import Watch

_MOST_WAITING = 64


class _Stream:
    """One client: its connection, and what waits to be sent to it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether too many requests are under way, or answered and not read."""
        return len(self.tasks) - self.connection.parked > self.connection.limits.requests_in_flight

    async def send(self, message: bytes) -> None:
        await self.waiting.put(message)

    async def close_stream(self) -> None:
        """The stream carries everything; it cannot be let go of."""

    async def finish(self, work: Coroutine[Any, Any, bytes | None]) -> None:
        answer = await work
        if answer is not None:
            await self.send(answer)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class LegacyTransport:
    """Serves one dispatcher over HTTP+SSE."""

    def __init__(self, dispatcher: Dispatcher, guard: Guard, messages_path: str) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._guard = guard
        self._messages_path = messages_path
        self._streams: dict[str, _Stream] = {}
        self._is_ending = False
        self._watch = Watch()

    def end_streams(self) -> None:
        """End every stream as soon as its calls are answered, because the server is going."""
        self._is_ending = True
        for stream in self._streams.values():
            stream.spawn(stream.send(b""))

    async def open(self, exchange: Exchange) -> None:
        """Serve `GET /sse` for as long as the client stays."""
        self._guard.check(exchange.headers)
        if exchange.scope["method"] != "GET":
            raise Refused(405, "Open the stream with GET", headers=((b"allow", b"GET"),))
        if len(self._streams) >= self._limits.sessions:
            raise Refused(
                503, "Too many sessions are open; try again later", headers=((b"retry-after", b"30"),)
            )
        name = secrets.token_urlsafe(24)
        stream = self._streams[name] = _Stream(Connection(self._limits, exchange.principal))
        url = f"{exchange.scope.get('root_path', '')}{self._messages_path}?session_id={name}"
        try:
            await exchange.open_events()
            await exchange.event(event(url.encode(), name=b"endpoint"))
            await self._deliver(exchange, stream)
            await exchange.close_events()
        finally:
            del self._streams[name]
            self._dispatcher.disconnect(stream.connection)
            for task in tuple(stream.tasks):
                task.cancel()

    async def _deliver(self, exchange: Exchange, stream: _Stream) -> None:
        loop = asyncio.get_running_loop()
        gone = loop.create_task(exchange.gone())
        try:
            while not gone.done():
                following = loop.create_task(stream.waiting.get())
                done, _ = await asyncio.wait(
                    {gone, following}, timeout=self._limits.keep_alive_seconds, return_when="FIRST_COMPLETED"
                )
                if following not in done:
                    following.cancel()
                    if not done:
                        await exchange.event(KEEP_ALIVE)
                    continue
                message = following.result()
                if message:
                    await exchange.event(event(message))
                if self._is_ending and not stream.connection.in_flight and stream.waiting.empty():
                    return
        finally:
            gone.cancel()

    async def post(self, exchange: Exchange) -> Whole:
        """Take one message; its answer goes to the stream."""
        self._guard.check(exchange.headers)
        if exchange.scope["method"] != "POST":
            raise Refused(405, "Post messages here", headers=((b"allow", b"POST"),))
        query = parse_qs(exchange.scope.get("query_string", b"").decode("latin-1"))
        stream = self._streams.get(query.get("session_id", [""])[0])
        if stream is None or stream.connection.principal != exchange.principal:
            raise Refused(404, "The session is not known, or no longer: open the stream again")
        message = jsonrpc.decode(await self._body(exchange))
        if stream.is_busy and jsonrpc.is_request(message):
            raise busy()
        known = stream.connection.listener
        reply = self._dispatcher.take_any(message, stream.connection, stream)
        if isinstance(reply, bytes):
            stream.spawn(stream.send(reply))
        elif reply is not None:
            stream.spawn(stream.finish(reply))
        listener = stream.connection.listener
        if known is None and listener is not None:
            stream.spawn(self._dispatcher.announce(listener, stream))
        return Whole(202, b"Accepted")

    async def _body(self, exchange: Exchange) -> bytes:
        self._watch.enter(exchange)
        try:
            return await exchange.body(self._limits)
        finally:
            self._watch.leave(exchange)
