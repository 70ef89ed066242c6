"""Legacy SSE: the HTTP+SSE transport of revision 2024-11-05, for clients that have no newer one.

`GET /sse` opens the stream that carries all answers; its first event names the URL to post messages to.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from .. import jsonrpc
from ..connection import Connection
from ..dispatch import AnyMessage, Dispatcher
from ..threads import Measured
from .accounts import Accounts
from .events import HEADERS, KEEP_ALIVE, event
from .guard import Guard, is_work, read_body, whole_body
from .message import AnyResponse, Request, Response
from .rejection import Rejection, reject_busy, reject_method, reject_session

_MAX_WAITING = 64
_NOTIFICATION_GAP_SECONDS = 0.02
"""Minimum time between a notification and an answer. TypeScript SDK 1.x handles notifications one step later
than answers, and an answer drops its progress handler: progress read together with the answer is lost.
Measured: 298 of 300 calls lost some progress without this gap, 1 of 300 with it."""
ACCEPTED = Response(202, b"Accepted")


class _Stream:
    """One client: its connection and the messages to send on its stream."""

    def __init__(self, connection: Connection, request: Request, accounts: Accounts) -> None:
        self.connection = connection
        self.owner = (request.principal, request.token_id)
        self._caller = request.caller
        self._accounts = accounts
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue(_MAX_WAITING)
        self.notified_at = 0.0
        """When a message other than an answer was last sent, by the loop's clock."""
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether too many requests are under way, or answered and unread."""
        return len(self.tasks) - self.connection.parked > self.connection.limits.requests_in_flight

    async def _queue(self, message: bytes) -> None:
        """Queue a message; until it is sent, its bytes are charged to the caller."""
        if message:
            self._accounts.charge(self._caller, len(message))
        try:
            await self.waiting.put(message)
        except asyncio.CancelledError:
            self.release(message)
            raise

    def release(self, message: bytes) -> None:
        """Give back the bytes of a message that was sent, or never will be."""
        if message:
            self._accounts.release(self._caller, len(message))

    async def send(self, message: bytes) -> None:
        await self._queue(message)
        self.notified_at = asyncio.get_running_loop().time()

    async def answer(self, answer: bytes) -> None:
        """Send an answer, after the change notifications that its call caused."""
        for change in self.connection.take_changes():
            await self.send(change)
        gap = self.notified_at + _NOTIFICATION_GAP_SECONDS - asyncio.get_running_loop().time()
        if gap > 0:
            await asyncio.sleep(gap)
        await self._queue(answer)

    async def close_stream(self) -> None:
        """Do nothing: there is only this stream."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def wake(self) -> None:
        """Wake the delivering loop; with a full queue it is awake anyway."""
        with suppress(asyncio.QueueFull):
            self.waiting.put_nowait(b"")


class LegacyTransport:
    """Serves one dispatcher over HTTP+SSE."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        guard: Guard,
        accounts: Accounts,
        messages_path: str,
        session_prefix: str = "",
    ) -> None:
        self._dispatcher = dispatcher
        self._accounts = accounts
        self._limits = dispatcher.limits
        self._guard = guard
        self._messages_path = messages_path
        self._session_prefix = session_prefix
        self._streams: dict[str, _Stream] = {}
        self._is_ending = False

    def end_streams(self) -> None:
        """End every stream once its calls are answered, because the server is stopping."""
        self._is_ending = True
        for stream in self._streams.values():
            stream.spawn(stream.send(b""))

    async def open(self, request: Request) -> AnyResponse:
        """Serve `GET /sse` until the client hangs up."""
        self._guard.check(request.headers)
        if request.method != "GET":
            raise reject_method("Open the stream with GET", b"GET")
        self._accounts.streams.check(request.caller)
        if len(self._streams) >= self._limits.sessions:
            return reject_session().response
        name = self._session_prefix + secrets.token_urlsafe(24)
        connection = Connection(self._limits, request.principal, request.caller)
        stream = self._streams[name] = _Stream(connection, request, self._accounts)
        self._accounts.streams.take(request.caller)
        url = f"{request.mount}{self._messages_path}?session_id={name}"
        try:
            response = await request.open_stream(200, HEADERS)
            await response.write(event(url.encode(), name=b"endpoint"))
            request.when_gone(stream.wake)
            while not request.is_gone:
                try:
                    message = await asyncio.wait_for(stream.waiting.get(), self._limits.keep_alive_seconds)
                except TimeoutError:
                    await response.write(KEEP_ALIVE)
                    continue
                if message:  # b"" only wakes this loop
                    stream.release(message)  # the connection charges what its client does not read
                    await response.write(event(message))
                if self._is_ending and not stream.connection.in_flight and stream.waiting.empty():
                    break
        finally:
            del self._streams[name]
            self._accounts.streams.give_back(request.caller)
            self._dispatcher.disconnect(stream.connection)
            for task in tuple(stream.tasks):
                task.cancel()
            while not stream.waiting.empty():
                stream.release(stream.waiting.get_nowait())
        return response

    async def post(self, request: Request) -> Response:
        """Handle one message; its answer goes to the stream."""
        self._guard.check(request.headers)
        if request.method != "POST":
            raise reject_method("Post messages here", b"POST")
        query = parse_qs(request.query.decode("latin-1"))
        stream = self._streams.get(query.get("session_id", [""])[0])
        if stream is None or stream.owner != (request.principal, request.token_id):
            raise Rejection(404, "The session is unknown or has expired: open the stream again")
        self._accounts.check(request.caller)
        if request.is_complete:
            message = jsonrpc.decode(whole_body(request, self._limits))
        else:
            body, _ = await read_body(request, self._limits, self._accounts)
            message = jsonrpc.decode_counted(body)
        if self._accounts.work.over and is_work(message):
            self._accounts.work.check(request.caller)
        if stream.is_busy and jsonrpc.is_request(message):
            raise reject_busy()
        stream.spawn(self._answer(stream, message))
        return ACCEPTED

    async def _answer(self, stream: _Stream, message: AnyMessage) -> None:
        had_listener = stream.connection.listener is not None
        work = self._dispatcher.answer_message(message, stream.connection, stream)
        answer = await Measured(work, partial(self._accounts.spend, stream.connection.caller))
        if answer is not None:
            await stream.answer(answer)
        listener = stream.connection.listener
        if listener is not None and not had_listener:
            stream.spawn(self._dispatcher.announce(listener, stream))
