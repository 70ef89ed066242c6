"""Endable: a process that a test can tell to end in good order, on Windows too.

A signal that one process sends another ends it at once there, and Wine has no consoles to type Ctrl-C in. So
a program runs inside of `python -m tests.support.endable PROGRAM`, which raises the signals in itself that
its standard input names. What is not tested so is that Windows delivers them.
"""

import asyncio
import os
import runpy
import signal
import subprocess
import sys
import threading
from typing import Any

IS_WINDOWS = os.name == "nt"


def words_for(module: str) -> list[str]:
    """Return what starts a module so that it can be told to end; its standard input has to be a pipe."""
    return [sys.executable, "-m", *(["tests.support.endable"] if IS_WINDOWS else []), module]


def send(process: subprocess.Popen[Any], number: int) -> None:
    """Send a signal to a process that was started so."""
    if not IS_WINDOWS:
        process.send_signal(number)
        return
    assert process.stdin is not None
    os.write(process.stdin.fileno(), bytes([number]))  # the pipe may have been opened for text or for bytes


def send_from_loop(process: asyncio.subprocess.Process, number: int) -> None:
    """Send a signal to one that an event loop started."""
    if not IS_WINDOWS:
        process.send_signal(number)
        return
    assert process.stdin is not None
    process.stdin.write(bytes([number]))


def _raise_what_is_named() -> None:
    # Not by `sys.stdin`, whose lock this thread would hold when the process ends.
    while number := os.read(0, 1):
        signal.raise_signal(signal.Signals(number[0]))


if __name__ == "__main__":
    threading.Thread(target=_raise_what_is_named, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
