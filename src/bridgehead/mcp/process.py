"""Process: runs a server's main coroutine and ends in bounded time, whatever its handlers still do.

`asyncio.run` waits without limit for tasks that ignore their cancellation and for threads that never return;
a server that is told to end must not.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def run_to_end(main: Coroutine[Any, Any, None], loop_factory: LoopFactory | None, within: float) -> None:
    """Run a coroutine on a loop of its own, and leave; threads that hang are given this many seconds."""
    loop = (loop_factory or asyncio.new_event_loop)()
    asyncio.set_event_loop(loop)
    serving = loop.create_task(main)
    try:
        while not serving.done():
            _run_on(loop, serving)
    finally:
        _leave(loop, within)


def _run_on(loop: asyncio.AbstractEventLoop, serving: asyncio.Task[None]) -> None:
    """Run until the server has ended, or something else that runs beside it wants the process to exit."""
    try:
        loop.run_until_complete(serving)
    except SystemExit:
        if serving.done():
            raise
        # Only a task of some handler has exited: its call is answered with a failure, and the server goes on.


def _leave(loop: asyncio.AbstractEventLoop, within: float) -> None:
    if not asyncio.all_tasks(loop):
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.stderr.flush()
        end = threading.Timer(within, os._exit, (0,))
        end.daemon = True
        end.start()


@contextmanager
def told_to_end() -> Iterator[asyncio.Event]:
    """Give an event that is set when a signal comes that ends a process."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hear(*_: object) -> None:
        loop.call_soon_threadsafe(told.set)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
