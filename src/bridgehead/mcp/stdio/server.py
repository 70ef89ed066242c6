"""The stdio server: lines in, dispatched, lines out, until the client closes its end.

Everything is bounded: requests wait when too many are in flight, reading stops when too many wait or too much
output is unread, and shutdown takes a bounded time, in which requests in flight are answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from .. import jsonrpc
from ..connection import Connection
from ..dispatch import Dispatcher
from ..errors import INVALID_REQUEST, ProtocolError
from ..process import on_end_signal, task_starter
from .pipes import Input, Output, open_input, open_output

UNREAD_SECONDS = 0.5
"""The longest wait for a client to read its progress before it gets the answer."""
UNREAD_POLL_SECONDS = 0.001
UNKNOWN_SECONDS = 0.01
"""The wait where the system cannot say what has been read (Windows, sockets on macOS)."""


async def serve(dispatcher: Dispatcher, connection: Connection, incoming: int, outgoing: int) -> None:
    """Serve a connection on two descriptors until its client leaves or a signal ends the process."""
    server = StdioServer(dispatcher, connection, open_input(incoming), partial(open_output, outgoing))
    on_end_signal(server.stop, dispatcher.limits.shutdown_seconds)
    await server.serve()


class TooLong:
    """Stands for a line over the limit, which was dropped."""


TOO_LONG: Final = TooLong()


class Lines:
    """Splits chunks into lines; an over-long line uses no memory and is reported once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        """The beginning of a line whose end has not arrived yet."""
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """Add a chunk and return the lines that it completes, without blank ones."""
        lines: list[bytes | TooLong] = []
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if self._size + len(end) > self._limit:
                lines.append(TOO_LONG)
            else:
                line = b"".join((*self._pieces, end)) if self._pieces else end
                if line.strip():
                    lines.append(line)
            self._pieces, self._size = [], 0
        if rest:
            self._size += len(rest)
            if self._size > self._limit:  # its size alone decides whether it is too long
                self._pieces.clear()
            else:
                self._pieces.append(rest)
        return lines

    def end(self) -> list[bytes | TooLong]:
        """Return the last line, if the input ended without a newline."""
        return self.feed(b"\n")


class StdioServer:
    """Moves lines between an input, the dispatcher and an output."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        connection: Connection,
        source: Input,
        open_output: Callable[[Callable[[], None]], Output],
    ) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._connection = connection
        self._waiting = connection.waiting
        self._input = source
        self._output = open_output(self.stop)
        self._lines = Lines(self._limits.message_bytes)
        self._tasks: dict[Coroutine[Any, Any, bytes | None], asyncio.Task[None]] = {}
        """Calls under way, by their coroutine: that is cheaper than `asyncio.current_task`."""
        self._announcer: asyncio.Task[None] | None = None
        self._drainer: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._start = task_starter(self._loop)
        self._flush_is_due = False
        self._has_notified = False
        """Whether there may be notifications that the client has not read yet."""
        self._is_paused = False
        self._has_input_ended = False
        self._has_client_left = False
        self._began = asyncio.Event()
        """The first input has been handled."""
        self._stopped = asyncio.Event()
        self._progress = asyncio.Event()

    async def serve(self) -> None:
        """Serve until the input ends, the client is gone, or `stop` is called."""
        self._input.start(self._receive)
        # Bridges open their far sides after the first answer, which need not wait for that.
        await self._began.wait()
        self._dispatcher.start()
        await self._stopped.wait()
        self._input.close()
        self._dispatcher.end_streams()
        self._connection.abandon_asked()
        if not self._output.is_broken:
            await self._finish_work()
        await self._abandon_work()
        await self._output.close(self._limits.shutdown_seconds)
        await self._dispatcher.stop()

    def stop(self) -> None:
        """Read nothing more, answer requests in flight, then end."""
        self._waiting.clear()
        self._has_input_ended = False
        self._began.set()
        self._stopped.set()
        self._progress.set()

    # --- in ------------------------------------------------------------------------------------------------

    def _receive(self, chunk: bytes) -> None:
        lines = self._lines.feed(chunk) if chunk else self._lines.end()
        for line in lines:
            if isinstance(line, TooLong):
                problem = f"Invalid request: a message may have {self._limits.message_bytes} bytes"
                self._write(jsonrpc.error(None, ProtocolError(INVALID_REQUEST, problem)))
                continue
            message = jsonrpc.decode(line)
            # Only requests wait: cancellations and answers end what they wait for. With nothing in flight no
            # limit can be reached, so that check is skipped.
            is_idle = not (self._tasks or self._waiting or self._output.size)
            if not is_idle and (self._waiting or not self._has_room) and jsonrpc.is_request(message):
                self._waiting.append(message)
            else:
                self._handle(message, is_lone=len(lines) == 1)
        self._began.set()
        if not chunk:
            self._has_input_ended = self._has_client_left = True
            self._stopped.set()
        self._balance()
        if self._announcer is None and self._connection.listener is not None:
            announcing = self._dispatcher.announce(self._connection.listener, self)
            self._announcer = self._loop.create_task(announcing)

    @property
    def _has_room(self) -> bool:
        return not self._connection.is_busy and self._output.size <= self._limits.output_bytes

    def _handle(
        self, message: jsonrpc.Message | jsonrpc.Batch | jsonrpc.Malformed, *, is_lone: bool = False
    ) -> None:
        reply = self._dispatcher.handle_message(message, self._connection, self)
        if isinstance(reply, bytes):
            self._answer(reply)
        elif reply is not None:
            # Only a lone call starts now. Otherwise a later message of the same chunk may cancel it, earlier
            # calls go first, and their answers are written together.
            start = self._start if is_lone and not self._tasks else self._loop.create_task
            task = start(self._answer_later(reply))
            if not task.done():
                self._tasks[reply] = task

    async def _answer_later(self, work: Coroutine[Any, Any, bytes | None]) -> None:
        try:
            answer = await work
            if answer is not None:
                if self._has_notified and not self._has_client_left:
                    await self._wait_until_read()
                self._answer(answer)
        finally:
            self._tasks.pop(work, None)
            self._progress.set()
            if self._waiting:
                self._advance()

    def _advance(self) -> None:
        """Start waiting requests while the limits of requests in flight and of unread output allow."""
        while self._waiting and self._has_room:
            self._handle(self._waiting.popleft())
        # Shutdown waits for the last task; a call that answers at once has none.
        self._progress.set()
        self._balance()

    def _balance(self) -> None:
        """Pause reading while too many requests wait or too much output is unread; otherwise resume."""
        is_full = (
            len(self._waiting) >= self._limits.requests_in_flight
            or self._output.size > self._limits.output_bytes
        )
        if is_full != self._is_paused and not self._stopped.is_set():
            self._is_paused = is_full
            if is_full:
                self._input.pause()
            else:
                self._input.resume()

    # --- out -----------------------------------------------------------------------------------------------

    def _answer(self, answer: bytes) -> None:
        """Write an answer, after the change notifications that its call caused."""
        if not self._has_client_left:
            for listener in self._connection.listeners:
                if listener.waiting:  # checked here to save a call: hardly any request changes anything
                    self._output.write(b"".join([message + b"\n" for message in listener.take()]))
        self._write(answer)

    def _write(self, message: bytes) -> None:
        """Write a message: at once if it is alone, else together with others at the end of the loop turn."""
        self._output.write(message + b"\n")
        if self._flush_is_due:
            return
        # A burst of answers costs one system call and wakes the client once. A lone answer goes out now,
        # since nothing can join it and the client waits for it.
        if len(self._tasks) <= 1 and not self._waiting:
            self._flush()
        else:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        self._output.flush()
        if self._output.is_broken:  # a pipe reports a closed reader only to its writer
            self.stop()
        elif self._output.size > self._limits.output_bytes and self._drainer is None:
            self._is_paused = True
            self._input.pause()
            self._drainer = self._loop.create_task(self._drain())
        elif self._waiting or self._is_paused:  # a fast reader took in one flush what had paused the input
            self._loop.call_soon(self._advance)

    async def _drain(self) -> None:
        while self._output.size > self._limits.output_bytes:  # a waiting `send` may have written again
            await self._output.drain(self._limits.output_bytes // 2)
        self._drainer = None
        if self._output.is_broken:
            self.stop()
        else:
            self._advance()

    async def send(self, message: bytes) -> None:
        """Send a message that is not an answer, waiting while the client is slow to read."""
        if self._waiting:  # the sending request may be parked by now, which makes room for another
            self._loop.call_soon(self._advance)
        # The Python SDK (mcp 1.20 and 1.30) crashes on notifications that arrive while it closes. Answers
        # still go out after the end of the input, so that requests can be piped in from a file.
        if self._has_client_left:
            return
        self._write(message)
        self._has_notified = True
        if self._output.size > self._limits.output_bytes:
            await self._output.drain(self._limits.output_bytes // 2)

    async def _wait_until_read(self) -> None:
        """Wait, for a bounded time, until the client has read the notifications."""
        # The TypeScript SDK (1.32 and 2.4, typescript-sdk#2580) handles an answer before notifications that
        # came in the same read, and then drops those: 29 of 90 streams lost their last notifications. An
        # answer that is written after the client has read them comes in a read of its own.
        self._flush()
        until = self._loop.time() + UNREAD_SECONDS
        while (unread := self._output.unread) and self._loop.time() < until:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(UNREAD_POLL_SECONDS)
        if unread is None:
            await asyncio.sleep(UNKNOWN_SECONDS)
        self._has_notified = False

    async def close_stream(self) -> None:
        """Do nothing: stdio has one stream."""

    # --- end -----------------------------------------------------------------------------------------------

    async def _finish_work(self) -> None:
        """Answer requests in flight.

        After a signal within `shutdown_seconds`; after the end of the input as long as answers keep coming.
        """
        deadline = self._loop.time() + self._limits.shutdown_seconds
        while self._tasks or self._waiting:
            self._progress.clear()
            if self._has_input_ended:
                deadline = self._loop.time() + self._limits.shutdown_seconds
            try:
                await asyncio.wait_for(self._progress.wait(), deadline - self._loop.time())
            except TimeoutError:
                return

    async def _abandon_work(self) -> None:
        self._waiting.clear()
        self._dispatcher.disconnect(self._connection)
        await asyncio.sleep(0)  # calls that have not started see that they are cancelled
        remaining = {
            *self._tasks.values(),
            *(task for task in (self._announcer, self._drainer) if task is not None),
        }
        for task in remaining:
            task.cancel()
        if remaining:
            await asyncio.wait(remaining, timeout=1.0)
