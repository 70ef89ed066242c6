"""Process: runs a server's main coroutine and ends in bounded time, even if handlers still run.

`asyncio.run` waits without limit for tasks that ignore their cancellation and for threads that never return;
a server that gets a signal must not.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
Result = TypeVar("Result")

TURN_SECONDS = 0.1
"""How often a loop that is shutting down is checked for being stuck."""
THREAD_SECONDS = 1.0
"""How long running threads may delay the exit of a process."""
CONSOLE_ENDS = frozenset({2, 5, 6})
"""Windows console events: closed, user logs off, machine shuts down."""


class Unserved(BaseException):
    """Raised if a file that is loaded for its bridge tries to serve it.

    A BaseException, so that no `except Exception` in the file swallows it.
    """


_is_loading = False


@contextmanager
def load_without_serving() -> Iterator[None]:
    """Make `stdio.run` and `http.run` raise Unserved, so that importing a file cannot start a server."""
    global _is_loading  # noqa: PLW0603 - the file that is imported calls those functions without arguments of ours
    was_loading, _is_loading = _is_loading, True
    try:
        yield
    finally:
        _is_loading = was_loading


def check_may_serve() -> None:
    """Raise Unserved inside of `load_without_serving`."""
    if _is_loading:
        raise Unserved


def end_signals() -> list[signal.Signals]:
    """Return the signals that shut this process down gracefully.

    A closed terminal sends SIGHUP; it stays ignored under `nohup`. Windows has SIGBREAK instead, for
    Ctrl-Break and a closed console.
    """
    signals = [signal.SIGTERM, signal.SIGINT]
    if sys.platform == "win32":
        signals.append(signal.SIGBREAK)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


def new_loop() -> asyncio.AbstractEventLoop:
    """Make an event loop; on Windows one whose servers keep listening."""
    if sys.platform == "win32":
        from .windows_loop import WindowsLoop  # lazy: Windows alone

        return WindowsLoop()
    return asyncio.new_event_loop()


def run_on_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine as `asyncio.run` does, on a `new_loop`."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def socket_loop() -> asyncio.AbstractEventLoop:
    """Make a uvloop if it is installed, else a `new_loop`."""
    try:
        import uvloop  # not available on every platform
    except ImportError:
        return new_loop()
    return uvloop.new_event_loop()


def task_starter(loop: asyncio.AbstractEventLoop) -> Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]:
    """Return a function that makes a task of this running loop, started at once on Python 3.12 and newer.

    Work that never waits is then done when it returns, without a turn of the loop.
    """
    if sys.version_info >= (3, 12):
        return partial(asyncio.Task, loop=loop, eager_start=True)
    return loop.create_task


def run_to_end(main: Coroutine[Any, Any, None], loop_factory: LoopFactory | None, within: float) -> None:
    """Run a coroutine on its own loop, then wait for threads for at most `THREAD_SECONDS`.

    `main` has given calls time to finish; the result of a thread whose call was given up is not needed.
    """
    loop = (loop_factory or new_loop)()
    asyncio.set_event_loop(loop)
    serving = loop.create_task(main)
    try:
        while not serving.done():
            try:
                loop.run_until_complete(serving)
            except SystemExit:
                # Raised in a handler's task, SystemExit stops the loop: let that call fail, and continue to
                # serve.
                if serving.done():
                    raise
    finally:
        # A task that ignores its cancellation would make closing the loop hang or warn: leave it open.
        if not asyncio.all_tasks(loop):
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        # Python joins other threads before it exits, without a limit; this timer is the limit.
        main_thread = threading.main_thread()
        if any(not thread.daemon and thread is not main_thread for thread in threading.enumerate()):
            if sys.stderr is not None:
                sys.stderr.flush()
            end = threading.Timer(min(within, THREAD_SECONDS), os._exit, (0,))
            end.daemon = True
            try:
                end.start()
            except RuntimeError:  # no thread can be started, so nothing would limit the wait for the others
                os._exit(0)


_console_handlers: list[Any] = []
"""Keeps the handler that Windows calls from being collected."""


def on_end_signal(act: Callable[[], None], within: float) -> None:
    """Call `act` in the loop when a signal asks the process to end.

    If a handler then blocks the loop for longer than `within` seconds, the process exits anyway.
    """
    loop = asyncio.get_running_loop()

    def note(*_: object) -> None:
        try:
            threading.Thread(target=_end_if_stuck, args=(loop, act, within), daemon=True).start()
        except RuntimeError:
            # No thread can be started (a limit of processes, no memory): end without the guard against a
            # loop that is stuck, rather than not at all.
            loop.call_soon_threadsafe(act)

    for number in end_signals():
        with suppress(NotImplementedError):  # Windows
            # Installs the wakeup descriptor, so that a signal wakes a loop that is just about to wait.
            loop.add_signal_handler(number, act)
        signal.signal(number, note)
    if sys.platform == "win32":
        import ctypes

        def handle(event: int) -> bool:
            return handle_console_event(event, note, lambda: time.sleep(within + TURN_SECONDS))

        set_handler = ctypes.windll.kernel32.SetConsoleCtrlHandler
        while _console_handlers:
            set_handler(_console_handlers.pop(), 0)
        _console_handlers.append(ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint32)(handle))
        set_handler(_console_handlers[-1], 1)


def handle_console_event(event: int, act: Callable[[], None], wait: Callable[[], object]) -> bool:
    """Call `act` and `wait` if the console ends; return whether it does.

    Windows ends the process when this returns. Ctrl-C and Ctrl-Break are left to their signals.
    """
    if event not in CONSOLE_ENDS:
        return False
    act()
    wait()
    return True


def _end_if_stuck(loop: asyncio.AbstractEventLoop, act: Callable[[], None], within: float) -> None:
    with suppress(RuntimeError):  # the loop is closed: the process is ending
        loop.call_soon_threadsafe(act)
        while True:
            has_turned = threading.Event()
            loop.call_soon_threadsafe(has_turned.set)
            if not has_turned.wait(within):
                os._exit(0)
            time.sleep(TURN_SECONDS)


@contextmanager
def shutdown_signals(within: float = 5.0) -> Iterator[asyncio.Event]:
    """Yield an event that is set by a signal to end; see `on_end_signal`."""
    ending = asyncio.Event()
    before = {number: signal.getsignal(number) for number in end_signals()}
    on_end_signal(ending.set, within)
    try:
        yield ending
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):  # Windows
                asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, handler)
