"""How long one test may take: one that hangs fails with its stacks, and the run goes on.

The limit is far above what any test needs, so that a busy machine never reaches it. Where a test waits for
something, its own limit is shorter and says more.

pytest-timeout is not used because a test that hangs here nearly always hangs in a coroutine: it would show
the event loop's selector instead of the `await`, and it stops watching once a test has failed, so that a
fixture which hangs afterwards hangs the run.
"""

import asyncio
import faulthandler
import os
import signal
import tempfile
import threading
import traceback
from collections.abc import Generator, Iterator
from types import FrameType
from typing import Any

import pytest

LIMIT = float(os.environ.get("BRIDGEHEAD_TEST_SECONDS", "300"))
# After the limit a test has this long to clean up before it is interrupted again.
GRACE = LIMIT / 3
# Code that never returns to the interpreter cannot be interrupted: then the process is ended.
LAST_RESORT = LIMIT * 2


class TimeLimit:
    """A pytest plugin that watches every test, its fixtures included."""

    def __init__(self, stderr: int) -> None:
        self._stderr = stderr
        self._in_phase = False
        self._expired = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._expired = ""
        interruptible = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()
        faulthandler.dump_traceback_later(
            LAST_RESORT if interruptible else LIMIT, exit=True, file=self._stderr
        )
        if interruptible:
            signal.signal(signal.SIGALRM, self._interrupt)
            signal.setitimer(signal.ITIMER_REAL, LIMIT, GRACE)
        try:
            return (yield)
        finally:
            if interruptible:
                signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        return (yield from self._phase())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        return (yield from self._phase())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        return (yield from self._phase())

    def _phase(self) -> Generator[None, object, object]:
        self._in_phase, self._expired = True, ""
        try:
            result = yield
        finally:
            self._in_phase = False
        # The interruption may have ended a task that nobody awaits, or met an `except BaseException`.
        if self._expired:
            pytest.fail(self._expired, pytrace=False)
        return result

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        # Between two phases an exception would end pytest itself; the next interruption comes soon enough.
        if self._in_phase:
            self._expired = f"This test took longer than {LIMIT:g} seconds.\n{_stacks()}"
            pytest.fail(self._expired, pytrace=False)


def watch(config: pytest.Config) -> None:
    """Hold every test of a run to the limit, unless somebody debugs it."""
    if not config.option.usepdb:
        capture = config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            stderr = os.dup(2)
        config.pluginmanager.register(TimeLimit(stderr), "time_limit")


def _stacks() -> str:
    """Where every thread is, and every task of the running loop down to the innermost `await`."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        threads = file.read().decode(errors="replace")
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return threads
    awaits = ("".join(traceback.format_list(list(_awaits(task.get_coro())))) for task in tasks)
    names = (f"Task {task.get_name()} (outermost call first):\n" for task in tasks)
    return threads + "".join(f"\n{name}{stack}" for name, stack in zip(names, awaits, strict=True))


def _awaits(awaited: Any) -> Iterator[traceback.FrameSummary]:
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            code = frame.f_code
            yield traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name)
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
