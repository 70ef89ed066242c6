"""Pipes: bytes in and out of file descriptors without ever blocking the event loop.

Where the loop can watch a descriptor (a pipe, a socket) it does; where it cannot (a file, a terminal,
anything on Windows) a thread does the same work. Both ways have the same interface and the same bounds.
"""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from .descriptors import count_unread, is_watchable

CHUNK = 64 * 1024
"""Bytes read at once: the capacity of a pipe, and small enough that malloc does not map pages for it."""


class Input(Protocol):
    """Where bytes come from. The callbacks run in the loop's thread; an empty chunk is the end."""

    def start(self, received: Callable[[bytes], None]) -> None:
        """Begin to read."""

    def pause(self) -> None:
        """Read no more until `resume`."""

    def resume(self) -> None:
        """Read on."""

    def close(self) -> None:
        """Stop for good."""


class Output(Protocol):
    """Where bytes go."""

    is_broken: bool
    """True once the reader is gone; later writes are dropped."""

    @property
    def size(self) -> int:
        """Return how many bytes wait to be taken by the reader."""

    @property
    def unread(self) -> int | None:
        """How much the reader has not read yet; only zero is exact. None if unknown."""

    def write(self, data: bytes) -> None:
        """Keep bytes for the reader."""

    def flush(self) -> None:
        """Write as much as possible without waiting."""

    async def drain(self, below: int) -> None:
        """Wait until no more than this many bytes wait, or the reader is gone."""

    async def close(self, within: float) -> None:
        """Wait, for a bounded time, until everything is handed over, and stop."""


def open_input(descriptor: int) -> Input:
    """Read a descriptor in the way that suits it."""
    return WatchedInput(descriptor) if is_watchable(descriptor) else ThreadedInput(descriptor)


def open_output(descriptor: int, on_break: Callable[[], None]) -> Output:
    """Write to a descriptor in the way that suits it.

    `on_break` is called when a thread finds that the reader is gone; other writers check `is_broken`.
    """
    return WatchedOutput(descriptor) if is_watchable(descriptor) else ThreadedOutput(descriptor, on_break)


class WatchedInput:
    """A pipe or socket that the event loop watches."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._received: Callable[[bytes], None] | None = None
        self._watching = False

    def start(self, received: Callable[[bytes], None]) -> None:
        """Begin to read."""
        self._received = received
        self.resume()

    def pause(self) -> None:
        """Read no more until `resume`."""
        if self._watching:
            self._watching = False
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        """Read on."""
        if not self._watching and self._received is not None:
            self._watching = True
            self._loop.add_reader(self._descriptor, self._readable)

    def close(self) -> None:
        """Stop for good."""
        self.pause()
        self._received = None

    def _readable(self) -> None:
        try:
            chunk = os.read(self._descriptor, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.pause()
        if self._received is not None:
            self._received(chunk)


class ThreadedInput:
    """A file, a terminal, or a Windows pipe, read by a thread, one chunk at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._received: Callable[[bytes], None] | None = None
        self._may_read = threading.Event()
        self._is_taken = threading.Event()

    def start(self, received: Callable[[bytes], None]) -> None:
        """Begin to read."""
        self._received = received
        self._may_read.set()
        threading.Thread(target=self._run, name="stdin reader", daemon=True).start()

    def pause(self) -> None:
        """Read no more until `resume`; a read that has begun may still bring a chunk."""
        self._may_read.clear()

    def resume(self) -> None:
        """Read on."""
        self._may_read.set()

    def close(self) -> None:
        """Stop for good; a thread that still waits for input ends with the process."""
        self._received = None
        self._may_read.set()
        self._is_taken.set()

    def _run(self) -> None:
        chunk = b"?"
        while chunk and self._may_read.wait() and self._received is not None:
            try:
                chunk = os.read(self._descriptor, CHUNK)
            except OSError:
                chunk = b""
            self._is_taken.clear()
            with suppress(RuntimeError):  # the loop has ended: nothing more is needed
                self._loop.call_soon_threadsafe(self._hand_over, chunk)
                self._is_taken.wait()

    def _hand_over(self, chunk: bytes) -> None:
        if self._received is not None:
            self._received(chunk)
        self._is_taken.set()


class _BufferedOutput(ABC):
    """The common part of both outputs: the queued bytes, and the writers that wait for them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.size = 0
        self.is_broken = False

    def write(self, data: bytes) -> None:
        """Keep bytes for the reader."""
        if not self.is_broken:
            self._parts.append(data)
            self.size += len(data)

    @abstractmethod
    def flush(self) -> None:
        """Write as much as possible without waiting."""

    @abstractmethod
    def _stop(self) -> None:
        """Stop using the descriptor."""

    @property
    def unread(self) -> int | None:
        """How much the reader has not read yet; only zero is exact. None if unknown."""
        return self.size or count_unread(self._descriptor)

    async def drain(self, below: int) -> None:
        """Wait until no more than this many bytes wait, or the reader is gone."""
        self.flush()
        if self.size > below:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((below, future))
            await future

    async def close(self, within: float) -> None:
        """Wait, for a bounded time, until everything is handed over, and stop."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.drain(0), within)
        self._stop()

    def _break(self) -> None:
        self.is_broken = True
        self._parts.clear()
        self.size = 0

    def _wake(self) -> None:
        """Wake the writers whose threshold has been reached."""
        staying = []
        for below, future in self._waiting:
            if self.size > below:
                staying.append((below, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = staying


class WatchedOutput(_BufferedOutput):
    """A pipe or socket that the event loop watches; writes what fits and waits for the rest."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._was_blocking = os.get_blocking(descriptor)
        os.set_blocking(descriptor, False)
        self._pending = memoryview(b"")
        self._watching = False

    def flush(self) -> None:
        """Write as much as possible without waiting."""
        if not self._watching:  # else the pipe is full, and the loop calls when it has room
            self._write()

    def _stop(self) -> None:
        if self._watching:
            self._unwatch()
        with suppress(OSError):
            os.set_blocking(self._descriptor, self._was_blocking)

    def _write(self) -> None:
        try:
            while self._pending or self._parts:
                if not self._pending:
                    self._pending = memoryview(b"".join(self._parts))
                    self._parts.clear()
                written = os.write(self._descriptor, self._pending)
                self._pending = self._pending[written:]
                self.size -= written
        except (BlockingIOError, InterruptedError):
            if not self._watching:
                self._watching = True
                self._loop.add_writer(self._descriptor, self._write)
        except OSError:
            self._pending = memoryview(b"")
            self._break()
        if self._watching and not self.size:
            self._unwatch()
        if self._waiting:
            self._wake()

    def _unwatch(self) -> None:
        self._watching = False
        self._loop.remove_writer(self._descriptor)


class ThreadedOutput(_BufferedOutput):
    """A file, a terminal, or a Windows pipe, written by a thread."""

    def __init__(self, descriptor: int, on_break: Callable[[], None]) -> None:
        super().__init__(descriptor)
        self._on_break = on_break
        # Protects `_chunks` and `_is_closed`, which the loop and the thread share, and wakes the thread.
        self._work = threading.Condition()
        self._chunks: list[bytes] = []
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def flush(self) -> None:
        """Pass the queued bytes to the thread."""
        if not self._parts:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stdout writer", daemon=True)
            self._thread.start()
        with self._work:
            self._chunks.append(b"".join(self._parts))
            self._work.notify()
        self._parts.clear()

    def _stop(self) -> None:
        with self._work:
            self._is_closed = True
            self._work.notify()

    def _run(self) -> None:
        while True:
            with self._work:
                self._work.wait_for(lambda: self._chunks or self._is_closed)
                if not self._chunks:
                    return
                data, self._chunks = b"".join(self._chunks), []
            count: int | None = len(data)
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                count = None
            with suppress(RuntimeError):  # the loop has ended; nobody waits any more
                self._loop.call_soon_threadsafe(self._written, count)

    def _written(self, count: int | None) -> None:
        if count is None:
            self._break()
            self._on_break()
        else:
            self.size -= count
        self._wake()
