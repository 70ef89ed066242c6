"""Link: one WebSocket to the far side, and the calls that wait on it.

Owns the map of pending calls, their time limits and the queue of outgoing requests. A reply finds its call by
id alone, in any order; a reply without a call is ignored and counted. When the socket closes, all pending
calls fail at once. `GameConnection` knows which link is the current one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import UNSET, Raw
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.protocol import State

from bridgehead.runtime import logs
from bridgehead.runtime.metrics import Counter

from ..errors import Disconnected, InvalidReply, ReplyTimeout, ReplyTooLarge
from . import wire

log = logs.logger("bitburner.link")

_MAX_UNSENT = 256 * 1024
"""Bytes that may wait in the transport; beyond that the game reads slowly, and frames wait in the outbox."""
_ENOUGH = 4096
"""From this size on, requests are sent at once, so that the game can start on them."""
_RETRY_SECONDS = 0.005


class CallFailed(Exception):
    """The far side answered with an error; the caller translates it."""

    def __init__(self, failure: wire.Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Link:
    """One connection, for as long as it lasts."""

    def __init__(
        self,
        socket: Connection,
        ids: Iterator[int],
        *,
        ignored: Counter,
        timeouts: Counter,
        max_bytes: int,
        on_notice: Callable[[wire.Reply], None] | None = None,
        halves: set[str] | None = None,
    ) -> None:
        self._socket = socket
        self._outbox = Outbox(socket)
        self._deadlines = Deadlines()
        self._ids = ids
        self._ignored = ignored
        self._timeouts = timeouts
        self._on_notice = on_notice
        self._max_bytes = max_bytes
        self._halves = set() if halves is None else halves
        self._end_cause = ""
        self._pending: dict[int, asyncio.Future[Raw]] = {}
        self._is_over = False
        self.memory: dict[str, Any] = {}
        """A cache for as long as the same game is connected."""
        self.is_shared = on_notice is not None
        """Whether the far side is a process that shares its game, not a game."""

    @property
    def pending(self) -> int:
        """The number of calls that wait for a reply."""
        return len(self._pending)

    async def call(self, method: str, params: bytes, timeout: float) -> Raw:
        """Send a request and return the undecoded result; an error in the reply raises `CallFailed`."""
        if self._is_over:
            raise Disconnected(method, self._end_cause)
        request_id = next(self._ids)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Raw] = loop.create_future()
        self._pending[request_id] = future
        began = loop.time()
        # The game may never answer (a request that it cannot read gets no reply), so every call has a limit.
        self._deadlines.watch(future, began + timeout)
        self._outbox.post(request_id, wire.encode_request(request_id, method, params))
        try:
            return await future
        except TimeoutError:
            self._timeouts.add()
            raise ReplyTimeout(method, loop.time() - began) from None
        except _ConnectionEnded:
            raise Disconnected(method, self._end_cause) from None
        except _FrameTooLarge as large:
            raise ReplyTooLarge(method, large.size, self._max_bytes) from None
        except _NoResult:
            raise InvalidReply(method, "it has neither a result nor an error") from None
        finally:
            # Its timer stays: letting it expire is cheaper than cancelling it.
            self._deadlines.due.pop(future, None)
            self._outbox.waiting.pop(request_id, None)  # cancelled before it was sent: it never will be
            del self._pending[request_id]
            # The future holds the failure, whose traceback holds this frame: without this, arguments of a
            # refused call stay in memory until the next garbage collection.
            del future

    async def run(self) -> None:
        """Handle frames until the socket closes."""
        try:
            while True:
                # As bytes: msgspec decodes the UTF-8 itself.
                self._handle_frame(await self._socket.recv(decode=False))
        except ConnectionClosed as closed:
            if closed.sent is not None and closed.sent.code == CloseCode.MESSAGE_TOO_BIG:
                self._end_cause = f"the answer was far larger than {self._max_bytes:,} bytes; ask for less"
        finally:
            self.fail_pending()

    def fail_pending(self) -> None:
        """Fail all pending calls, and every later one."""
        self._is_over = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(_ConnectionEnded())

    def _handle_frame(self, frame: bytes) -> None:
        if len(frame) > self._max_bytes:
            self._fail_large(frame)
            return
        reply = wire.decode_reply(frame, self._halves)
        if reply is None:
            self._ignore("malformed", frame)
        elif reply.method is not UNSET and self._on_notice is not None:
            self._on_notice(reply)
        else:
            future = self._pending.get(reply.id) if isinstance(reply.id, int) else None
            if future is None or future.done():
                self._ignore("unsolicited", frame)
            elif isinstance(reply.error, Raw) and bytes(reply.error) != wire.NULL:
                future.set_exception(CallFailed(wire.decode_failure(bytes(reply.error))))
            elif isinstance(reply.result, Raw):
                future.set_result(reply.result)
            else:
                self._ignore("malformed", frame)
                future.set_exception(_NoResult())

    def _fail_large(self, frame: bytes) -> None:
        """Fail the call whose reply is too large; the game stays connected."""
        request_id = wire.find_request_id(frame)
        future = None if request_id is None else self._pending.get(request_id)
        if future is None or future.done():
            self._ignore("too large", frame)
        else:
            future.set_exception(_FrameTooLarge(len(frame)))

    def _ignore(self, why: str, frame: bytes) -> None:
        self._ignored.add(why)
        log.debug("reply ignored", why=why, bytes=len(frame))

    async def is_alive(self, within: float) -> bool:
        """Return whether the far side answers a ping in time."""
        try:
            async with asyncio.timeout(within):
                await (await self._socket.ping())
        except (TimeoutError, ConnectionClosed):
            return False
        return not self._is_over

    async def close(self, code: int, reason: str) -> None:
        """Close the socket with a reason."""
        self.fail_pending()
        await self._socket.close(code, reason)


class _NoResult(Exception):
    """The reply to a call has neither a result nor an error."""


class _FrameTooLarge(Exception):
    """The reply to a call is larger than the limit."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class _ConnectionEnded(Exception):
    """The socket closed while a call waited."""


class Deadlines:
    """Time limits of futures, with one timer for all of them."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.due: dict[asyncio.Future[Any], float] = {}
        """The limits by future; take one out to forget it."""
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, future: asyncio.Future[Any], when: float) -> None:
        """Fail a future with TimeoutError at this time of the loop."""
        self.due[future] = when
        if self._timer is None or when < self._timer.when():
            self._schedule(when)

    def _schedule(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        for future, when in self.due.items():
            if when <= now and not future.done():
                future.set_exception(TimeoutError())
        later = [when for when in self.due.values() if when > now]
        if later:
            self._schedule(min(later))


class Outbox:
    """Requests queued for one connection, by id.

    Requests of one turn of the loop leave in one write; a cancelled one that is still queued is never sent.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self.waiting: dict[int, bytes] = {}
        self._size = 0
        self._is_due = False

    def post(self, request_id: int, frame: bytes) -> None:
        """Send a frame: at the end of this turn of the loop, or as soon as there is enough."""
        self.waiting[request_id] = frame
        self._size += len(frame)
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._flush)
        elif self._size >= _ENOUGH:
            self._send()

    def _flush(self) -> None:
        self._is_due = False
        self._send()
        if self.waiting:
            self._is_due = True
            self._loop.call_later(_RETRY_SECONDS, self._flush)

    def _send(self) -> None:
        """Send as much as the connection can take."""
        connection = self._connection
        self._size = 0
        # Nothing can be sent any more; `Link.run` fails the calls.
        if connection.state is not State.OPEN:
            self.waiting.clear()
        while self.waiting and connection.transport.get_write_buffer_size() <= _MAX_UNSENT:
            # Join frames into one write of limited size, at least one frame. `protocol.send_text` builds the
            # frame without writing it, which the library's own `send` would do frame by frame.
            size = 0
            while self.waiting and size <= _MAX_UNSENT:
                request_id = next(iter(self.waiting))
                frame = self.waiting.pop(request_id)
                connection.protocol.send_text(frame)
                size += len(frame)
            connection.transport.write(b"".join(connection.protocol.data_to_send()))
