"""Descriptors: standard input and output as file descriptors, before there is an event loop.

From the start on, standard output belongs to the protocol: whatever else is printed goes to standard error.
"""

from __future__ import annotations

import os
import stat
import sys


def is_watchable(descriptor: int) -> bool:
    """Tell whether the event loop can watch a descriptor."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def claim() -> tuple[int, int]:
    """Take standard input and output for the protocol; prints and children get other ones."""
    _open_missing()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (incoming, outgoing):
            msvcrt.setmode(descriptor, os.O_BINARY)
    return incoming, outgoing


def _open_missing() -> None:
    """Put nothing where a standard descriptor is closed, or the next one opened would take its place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def write_all(descriptor: int, data: bytes) -> None:
    """Write an answer to a client that has just asked, and waits for it."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        return  # the client is gone already, as the server will find
