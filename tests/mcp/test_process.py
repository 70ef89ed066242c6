"""Process: it ends in bounded time, whatever its handlers, threads and terminals do."""

import asyncio
import subprocess
import sys
import time

import pytest

from bridgehead.mcp.process import handle_console_event, task_starter
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize(
    ("event", "is_end"), [(0, False), (1, False), (2, True), (5, True), (6, True)]
)  # Ctrl-C, Ctrl-Break; the console is closed, the user logs off, the machine shuts down
def test_on_windows_a_console_that_ends_is_answered_only_after_the_end_has_begun(
    event: int, *, is_end: bool
) -> None:
    steps: list[str] = []

    handled = handle_console_event(event, lambda: steps.append("act"), lambda: steps.append("wait"))

    assert handled is is_end
    assert steps == (["act", "wait"] if is_end else [])


def run_program(program: str) -> tuple[int, str, float]:
    """Run some Python in a process of its own; return its status, what it said and how long it took."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return done.returncode, done.stdout + done.stderr, time.monotonic() - began


HUNG_THREAD = """
import asyncio, threading
from bridgehead.mcp.process import run_to_end

async def main():
    threading.Thread(target=threading.Event().wait).start()
    print("served", flush=True)

run_to_end(main(), None, 0.2)
"""


def test_a_thread_that_never_returns_does_not_keep_the_process() -> None:
    status, said, _ = run_program(HUNG_THREAD)

    assert (status, said) == (0, "served\n")


def test_the_time_for_calls_is_not_given_to_threads_once_more() -> None:
    status, said, _ = run_program(HUNG_THREAD.replace("None, 0.2", "None, 3600"))

    assert (status, said) == (0, "served\n")


STUBBORN_TASK = """
import asyncio
from bridgehead.mcp.process import run_to_end

async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def main():
    task = asyncio.get_running_loop().create_task(stubborn())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    print("served", flush=True)

run_to_end(main(), None, 0.2)
"""


def test_a_task_that_ignores_its_cancellation_does_not_keep_the_process() -> None:
    status, said, _ = run_program(STUBBORN_TASK)

    assert status == 0
    assert said.startswith("served\n")


# In processes of their own too: what ends a process that hangs must not end the one that runs the tests.
LEAVING_TASK = """
import asyncio
from bridgehead.mcp.process import run_to_end

async def leave():
    raise SystemExit(3)

async def main():
    await asyncio.wait([asyncio.get_running_loop().create_task(leave())])
    print("served to its end", flush=True)

run_to_end(main(), None, 1.0)
"""


def test_a_task_that_exits_beside_the_server_does_not_end_it() -> None:
    status, said, _ = run_program(LEAVING_TASK)

    assert status == 0
    assert said.startswith("served to its end\n")


LEAVING_SERVER = """
from bridgehead.mcp.process import run_to_end

async def main():
    raise SystemExit(3)

run_to_end(main(), None, 1.0)
"""


def test_a_server_that_exits_itself_ends_with_that_status() -> None:
    assert run_program(LEAVING_SERVER)[:2] == (3, "")


SIGNALLED = """
import asyncio, signal
from bridgehead.mcp.process import end_signals, shutdown_signals

async def main():
    before = {number: signal.getsignal(number) for number in end_signals()}
    with shutdown_signals() as told:
        print(told.is_set(), flush=True)
        signal.raise_signal(signal.SIGTERM)
        await told.wait()
    print({number: signal.getsignal(number) for number in end_signals()} == before, flush=True)

asyncio.run(main())
"""


def test_a_signal_sets_the_event_and_afterwards_signals_are_as_before() -> None:
    assert run_program(SIGNALLED)[:2] == (0, "False\nTrue\n")


@pytest.mark.parametrize(("handler", "ends"), [("SIG_DFL", True), ("SIG_IGN", False)])
def test_a_terminal_that_is_closed_ends_a_process_unless_it_was_started_to_outlive_it(
    handler: str, *, ends: bool
) -> None:
    program = (
        "import signal\n"
        "from bridgehead.mcp.process import end_signals\n"
        f"signal.signal(signal.SIGHUP, signal.{handler})\n"
        "print(signal.SIGHUP in end_signals())"
    )

    assert run_program(program)[1] == f"{ends}\n"


async def test_work_that_never_waits_may_be_done_when_it_is_started_and_else_at_the_next_turn() -> None:
    async def work() -> int:
        return 7

    task = task_starter(asyncio.get_running_loop())(work())

    assert task.done() == (sys.version_info >= (3, 12))
    assert await task == 7


NO_THREADS = """
import asyncio, os, signal, threading
from bridgehead.mcp.process import run_to_end, shutdown_signals

def refuse(thread):
    raise RuntimeError("can't start new thread")

async def main():
    with shutdown_signals() as told:
        hung = threading.Thread(target=threading.Event().wait)  # and one that never ends
        hung.start()
        threading.Thread.start = refuse
        asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGTERM)
        await told.wait()
        print("told", flush=True)

run_to_end(main(), None, 5.0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM that a process could hear")
def test_a_signal_ends_it_although_no_thread_can_be_started() -> None:
    """As under a limit of processes or of memory: the guard against a stuck loop cannot run then."""
    status, said, _ = run_program(NO_THREADS)

    assert (status, said) == (0, "told\n")
