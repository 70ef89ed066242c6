"""Endable: a process that a test can tell to end in good order, on Windows too.

A signal that one process sends another ends it at once there, and Wine has no consoles to type Ctrl-C in. So
a program runs inside of `python -m tests.support.endable PROGRAM`, which raises the signals in itself that
its standard input names. What is not tested so is that Windows delivers them.
"""

import os
import runpy
import signal
import subprocess
import sys
import threading
from typing import IO, Any


def words_for(module: str) -> list[str]:
    """Return what starts a module so that it can be told to end; its standard input has to be a pipe."""
    if os.name != "nt":
        return [sys.executable, "-m", module]
    return [sys.executable, "-m", "tests.support.endable", module]


def send(process: subprocess.Popen[Any], number: int) -> None:
    """Send a signal to a process that was started so."""
    if os.name != "nt":
        process.send_signal(number)
        return
    # The descriptor itself: it does not matter whether the process was opened for text or bytes.
    descriptor: IO[Any] | None = process.stdin
    assert descriptor is not None
    with open(descriptor.fileno(), "wb", buffering=0, closefd=False) as pipe:
        pipe.write(b"%d\n" % number)


def _raise_what_is_named() -> None:
    for line in sys.stdin.buffer:
        signal.raise_signal(signal.Signals(int(line)))


if __name__ == "__main__":
    threading.Thread(target=_raise_what_is_named, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
