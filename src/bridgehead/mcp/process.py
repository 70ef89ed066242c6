"""Process: runs a server's main coroutine and ends in bounded time, whatever its handlers still do.

`asyncio.run` waits without limit for tasks that ignore their cancellation and for threads that never return;
a server that is told to end must not.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

# Lazily, since a stdio server asks for `end_signals` before its first answer.
from .lazy_imports import asyncio, threading, time

LoopFactory = Callable[[], "asyncio.AbstractEventLoop"]
Result = TypeVar("Result")

TURN_SECONDS = 0.1
"""How often a loop that is to end is asked whether it still turns."""
CONSOLE_ENDS = frozenset({2, 5, 6})
"""What Windows tells a process whose console is closed, whose user logs off, whose machine shuts down."""


def end_signals() -> list[signal.Signals]:
    """Return the signals that end this process in good order.

    A terminal that is closed sends SIGHUP. Under `nohup` it is ignored, and stays so. Windows has SIGBREAK
    instead: for Ctrl-Break, and for a console that is closed.
    """
    signals = [signal.SIGTERM, signal.SIGINT]
    if sys.platform == "win32":
        signals.append(signal.SIGBREAK)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


def new_loop() -> asyncio.AbstractEventLoop:
    """Make an event loop on which servers can be relied on."""
    if sys.platform == "win32":
        from .windows_loop import WindowsLoop

        return WindowsLoop()
    return asyncio.new_event_loop()


def run_on_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that may serve somebody, as `asyncio.run` does, on a loop that can be relied on."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def socket_loop() -> asyncio.AbstractEventLoop:
    """Make the fastest event loop for sockets that there is here."""
    try:
        import uvloop  # not to be had everywhere
    except ImportError:
        return new_loop()
    return uvloop.new_event_loop()


def start_task(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """Make a task of this loop, which runs already, and begin it at once where Python can (3.12 and newer).

    Work that never waits is done when this returns, and no turn of the loop was spent on it.
    """
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    return loop.create_task(work)


def run_to_end(main: Coroutine[Any, Any, None], loop_factory: LoopFactory | None, within: float) -> None:
    """Run a coroutine on a loop of its own, and leave; threads that hang are given this many seconds."""
    loop = (loop_factory or new_loop)()
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
        if sys.stderr is not None:
            sys.stderr.flush()
        end = threading.Timer(within, os._exit, (0,))
        end.daemon = True
        end.start()


def hear_end(act: Callable[[], None], within: float) -> None:
    """Call something in the loop when a signal comes that ends a process.

    From then on the loop must not stand still for longer than this many seconds. Where it does, because a
    handler blocks it, the process ends all the same.
    """
    loop = asyncio.get_running_loop()

    def note(*_: object) -> None:
        threading.Thread(target=_end_if_stuck, args=(loop, act, within), daemon=True).start()

    for number in end_signals():
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, act)  # which wakes the loop, even if it is just about to wait
        signal.signal(number, note)
    if sys.platform == "win32":
        _hear_console(note, within)


def handle_console_event(event: int, act: Callable[[], None], wait: Callable[[], object]) -> bool:
    """Act on the end of a console and wait for what that brings; tell whether the event was such an end.

    Windows ends the process when this returns. Ctrl-C and Ctrl-Break are left to their signals.
    """
    if event not in CONSOLE_ENDS:
        return False
    act()
    wait()
    return True


_console_handlers: list[Any] = []
"""The one that Windows calls, which must not be collected."""


def _hear_console(act: Callable[[], None], within: float) -> None:
    if sys.platform == "win32":
        import ctypes

        def handle(event: int) -> bool:
            return handle_console_event(event, act, lambda: time.sleep(within + TURN_SECONDS))

        set_handler = ctypes.windll.kernel32.SetConsoleCtrlHandler
        while _console_handlers:
            set_handler(_console_handlers.pop(), 0)
        _console_handlers.append(ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint32)(handle))
        set_handler(_console_handlers[-1], 1)


def _end_if_stuck(loop: asyncio.AbstractEventLoop, act: Callable[[], None], within: float) -> None:
    with suppress(RuntimeError):  # the loop is closed: the end has come
        loop.call_soon_threadsafe(act)
        while True:
            has_turned = threading.Event()
            loop.call_soon_threadsafe(has_turned.set)
            if not has_turned.wait(within):
                os._exit(0)
            time.sleep(TURN_SECONDS)


@contextmanager
def shutdown_signals(within: float = 5.0) -> Iterator[asyncio.Event]:
    """Give an event that is set when a signal comes that ends a process; see `hear_end`."""
    told = asyncio.Event()
    before = {number: signal.getsignal(number) for number in end_signals()}
    hear_end(told.set, within)
    try:
        yield told
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):  # Windows
                asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, handler)
