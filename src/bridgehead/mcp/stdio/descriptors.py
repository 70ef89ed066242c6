"""Descriptors: standard input and output as file descriptors.

Standard output belongs to the protocol from the start: anything else that is printed goes to standard error.
"""

from __future__ import annotations

import os
import stat
import sys


def is_watchable(descriptor: int) -> bool:
    """Whether the event loop can watch a descriptor: pipes and sockets, not on Windows."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def count_unread(descriptor: int) -> int | None:
    """Return how much the other side of a pipe or socket has not read yet; None if unknown.

    Only zero is exact: for a socket, Linux counts memory, not bytes.
    """
    try:
        import fcntl  # not on Windows
        import termios

        # For a pipe this counts its content, at both ends; for a socket, the bytes its peer has not taken
        # (SIOCOUTQ, which is TIOCOUTQ on Linux). Node.js makes sockets for the standard streams of its
        # children.
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        counted = fcntl.ioctl(descriptor, termios.FIONREAD if is_pipe else termios.TIOCOUTQ, bytes(4))
    except (ImportError, OSError):
        return None
    return int.from_bytes(counted, sys.byteorder)


def claim() -> tuple[int, int]:
    """Move standard input and output to new descriptors, out of reach of `print` and child processes."""
    # A closed standard descriptor would be reused by the next file that is opened.
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
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
