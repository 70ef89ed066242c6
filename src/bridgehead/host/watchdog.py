"""Watchdog: logs which tool blocks the event loop, and where.

A thread schedules a callback on the loop and waits for it, at the cost of two wake-ups a second. It logs and
counts from that thread, because nothing else runs while the loop is blocked.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from bridgehead.mcp import Invocation
from bridgehead.runtime import logs

BLOCKED_SECONDS = 1.0
"""A turn of the loop that takes this long is logged: everybody else waits, and people notice a second."""
NO_TOOL = "(none)"
_MAX_FRAMES = 6

log = logs.logger("host.watchdog")


class Watchdog:
    """Watches the running loop of the thread that creates it."""

    def __init__(self, count: Callable[[str], None]) -> None:
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._has_ended = threading.Event()

    def start(self) -> None:
        """Watch from now on."""
        try:
            threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        except RuntimeError as problem:  # a limit of processes or of memory: serve without it
            log.warn("the event loop is not watched", problem=str(problem))

    def stop(self) -> None:
        """Stop watching."""
        self._has_ended.set()

    def _watch(self) -> None:
        while not self._has_ended.wait(BLOCKED_SECONDS / 2):
            turned = threading.Event()
            began = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(turned.set)
            except RuntimeError:  # the loop is closed
                return
            if not turned.wait(BLOCKED_SECONDS):
                self._report()
                while not turned.wait(BLOCKED_SECONDS) and not self._has_ended.is_set():
                    pass
                log.warn("the event loop is running again", seconds=round(time.monotonic() - began, 1))

    def _report(self) -> None:
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - the documented way to look at another thread
        tool = next((call.name for call in _calls(frame)), NO_TOOL)
        lines = [f"{caller.f_code.co_filename}:{caller.f_lineno}" for caller in _frames(frame)][:_MAX_FRAMES]
        self._count(tool)
        log.error(
            "the event loop is blocked",
            tool=tool,
            line=lines[0] if lines else "",
            called_from=lines[1:],
            next_step="Make the tool async, or declare it with in_thread=True.",
        )


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _calls(frame: FrameType | None) -> Iterator[Invocation]:
    """Yield the running calls, innermost first: the engine's hook has each in a local named `call`."""
    for caller in _frames(frame):
        call = caller.f_locals.get("call")
        if isinstance(call, Invocation):
            yield call
