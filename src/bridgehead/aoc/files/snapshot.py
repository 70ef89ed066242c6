"""Snapshot: read a file at one moment.

Only regular files up to a limit are read, so a FIFO, a device or a huge file in place of a record can neither
block a reader nor exhaust memory. Every failure is a `StorageError` that names the file and what to do.
"""

# ruff: noqa: PTH112 - paths are strings here

from __future__ import annotations

import os
import stat
import sys
from typing import NamedTuple

import msgspec

from bridgehead.runtime import durable
from bridgehead.runtime.errors import StorageError

from .layout import Identity

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some editors put it in front of UTF-8; it is not part of the text."""
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions that decoding a file's JSON can raise."""

# O_NONBLOCK: opening a FIFO would otherwise wait for its writer, before fstat can tell that it is one.
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NOT_A_FILE = "it is not a file but a folder or something else"
_CHUNK = 64 * 1024
"""Small, because the last read of every file returns nothing but allocates a buffer of this size."""


class Snapshot(NamedTuple):
    """A file's content and the identity it had before the read."""

    data: bytes
    identity: Identity


def read_snapshot(path: str, limit: int, start: int = 0) -> Snapshot | None:
    """Read a file of at most `limit` bytes, from an offset on; None if there is no such file."""
    # Windows refuses to open a folder with the code of a file in use, which would be retried in vain.
    if sys.platform == "win32" and os.path.isdir(path):
        raise unreadable(path, _NOT_A_FILE)
    try:
        descriptor = durable.retry_while_locked(os.open, path, _OPEN)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(_NOT_A_FILE)
            if status.st_size > limit:
                raise OSError(f"it has {status.st_size:,} bytes, and the limit is {limit:,}")
            if start:
                os.lseek(descriptor, start, os.SEEK_SET)
            data = os.read(descriptor, max(0, status.st_size - start) + 1)
            # The file may have grown since fstat, or a read may return less than asked for.
            while more := os.read(descriptor, _CHUNK):
                data += more
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise unreadable(path, failure.strerror or str(failure)) from failure
    return Snapshot(data, Identity(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


def unreadable(path: str, problem: str) -> StorageError:
    """Make the error for a file that cannot be read."""
    return StorageError(
        f"{path} cannot be read: {problem}.",
        next_step="Put a readable file in its place, or move away what is there.",
        path=path,
    )
